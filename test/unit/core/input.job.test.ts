import { describe, expect, test } from '@jest/globals';
import { parseJobInput, type JobSpec } from '../../../core/input/job.ts';
import { MAX_STEPS } from '../../../core/input/jobChecks.ts';
import type { TimeoutPolicy } from '../../../core/input/timeoutPolicy.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';

const STEP = { name: 'unit', commands: 'make test' };
const JOB = { name: 'web', test: [STEP] };
const STEP_AFTER = { name: 'clean', commands: 'make clean' };
const HOUR = 3_600_000;

function admitted(input: object, policy?: TimeoutPolicy): JobSpec {
  const parsed = parseJobInput(input, { workflowId: 'job-web', runId: 'run-1', policy });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.spec;
}

function errorsOf(input: unknown, policy?: TimeoutPolicy): string[] {
  const parsed = parseJobInput(input, { workflowId: 'job-web', policy });
  return parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`);
}

test('a minimal job gets the defaults', () => {
  expect(admitted(JOB)).toEqual({
    name: 'web',
    timeoutMs: 4 * HOUR,
    gracePeriodMs: HOUR / 2,
    maxAgeMs: 7 * 24 * HOUR,
    warnings: [],
    steps: [
      {
        stage: 'test',
        name: 'unit',
        workflowId: 'job-web-test-1',
        bestEffort: false,
        skipOnSuccess: false,
        storage: { path: 'jobs/web/run-1/test-unit', timeout: '10m' },
        runner: {
          ciServer: 'none',
          job: 'job-web',
          command: ['/bin/sh', '-e', '-c', 'make test'],
          env: { JOB_NAME: 'web', BUILD_ID: 'run-1' },
          timeouts: { jobTimeout: '2h' },
          stop: { gracePeriod: '15s' },
        },
      },
    ],
  });
});

test('a step’s runner has the grace period of the step, and only its command gets the stop signal', () => {
  const [step] = admitted(JOB).steps;
  expect(parseRunnerInput(step?.runner)).toMatchObject({
    ok: true,
    spec: {
      job: 'job-web',
      pod: {
        terminationGracePeriodSeconds: 25,
        supervision: {
          signalTarget: 'process',
          signalTimeoutMs: 15_000,
          cleanupTimeoutMs: 5_000,
          timeoutMs: 2 * HOUR,
        },
      },
    },
  });
});

test('steps run in the order of the stages, and are numbered in each', () => {
  const { steps } = admitted({
    ...JOB,
    post: [
      { ...STEP, name: 'p1', bestEffort: true },
      { ...STEP, name: 'p2', skipOnSuccess: true },
    ],
    pre: [
      { ...STEP, name: 'a' },
      { ...STEP, name: 'b' },
    ],
  });
  expect(
    steps.map(({ workflowId, name, bestEffort, skipOnSuccess }) => [
      workflowId,
      name,
      bestEffort,
      skipOnSuccess,
    ]),
  ).toEqual([
    ['job-web-pre-1', 'a', false, false],
    ['job-web-pre-2', 'b', false, false],
    ['job-web-test-1', 'unit', false, false],
    ['job-web-post-1', 'p1', true, false],
    ['job-web-post-2', 'p2', false, true],
  ]);
});

test('a step with all its fields', () => {
  const step = {
    name: 'full',
    image: 'example.com/tests:1',
    command: ['./run', '--all'],
    env: { A: 'b' },
    resources: { requests: { cpu: 1 }, limits: { memory: '2Gi' } },
    volumes: [
      { name: 'cloud', mountPath: '/cloud', readOnly: true, secret: { secretName: 'cloud' } },
    ],
    stop: { target: 'group' },
    onEviction: 'replace',
    timeout: '30m',
    gracePeriod: '100s',
  };
  expect(admitted({ ...JOB, namespace: 'ci', test: [step] }).steps[0]?.runner).toEqual({
    ciServer: 'none',
    job: 'job-web',
    namespace: 'ci',
    image: 'example.com/tests:1',
    command: ['./run', '--all'],
    env: { A: 'b', JOB_NAME: 'web', BUILD_ID: 'run-1' },
    pod: {
      spec: {
        containers: [
          {
            name: 'runner',
            resources: { requests: { cpu: '1' }, limits: { memory: '2Gi' } },
            volumeMounts: [{ name: 'cloud', mountPath: '/cloud', readOnly: true }],
          },
        ],
        volumes: [{ name: 'cloud', secret: { secretName: 'cloud' } }],
      },
    },
    timeouts: { jobTimeout: '30m' },
    stop: { gracePeriod: '100s', target: 'group' },
    onEviction: 'replace',
  });
});

test('a grace period longer than platforms honor causes a warning, if the input sets it', () => {
  expect(admitted({ ...JOB, test: [{ ...STEP, gracePeriod: '3m' }] }).warnings).toEqual([
    expect.stringMatching(/^test unit: stop: .*3m23s.*spot instance/),
  ]);
});

describe('each of timeout and gracePeriod may be given alone', () => {
  test.each([
    [{ timeout: '10m' }, { jobTimeout: '10m' }, '15s'],
    [{ gracePeriod: '1m' }, { jobTimeout: '2h' }, '1m'],
  ])('%j', (times, timeouts, gracePeriod) => {
    expect(admitted({ ...JOB, test: [{ ...STEP, ...times }] }).steps[0]?.runner).toMatchObject({
      timeouts,
      stop: { gracePeriod },
    });
  });
});

describe('all errors are reported at once', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_none, index) => ({ ...STEP, name: `s${index}` }));
  test.each<[object | null, string[]]>([
    [null, ['invalid input']],
    [{}, ['required name', 'required test']],
    [{ name: 'web', test: [] }, ['out_of_range test']],
    [{ ...JOB, tests: [] }, ['unknown_field tests']],
    [{ ...JOB, name: 'a b' }, ['invalid name']],
    [{ ...JOB, timeout: 'soon' }, ['invalid timeout']],
    [{ ...JOB, repository: 'acme' }, ['invalid repository']],
    [{ ...JOB, timeout: '25h' }, ['out_of_range timeout']],
    [{ ...JOB, maxAge: '1h' }, ['conflict maxAge']],
    [{ ...JOB, test: [{ name: 'x' }] }, ['required test.0.commands']],
    [{ ...JOB, test: [{ ...STEP, command: ['x'] }] }, ['conflict test.0.commands, command']],
    [{ ...JOB, test: [{ ...STEP, bestEffort: true }] }, ['invalid test.0.bestEffort']],
    [
      { ...JOB, pre: [{ ...STEP, name: 'a', skipOnSuccess: true }] },
      ['invalid pre.0.skipOnSuccess'],
    ],
    [{ ...JOB, post: [STEP] }, ['duplicate post.0.name']],
    [
      {
        ...JOB,
        test: [
          {
            ...STEP,
            env: {
              JOB_NAME: 'x',
              BUILD_ID: 'x',
              JOB_SPEC: 'x',
              SHARED_DIR: 'x',
              ARTIFACT_DIR: 'x',
              JOB_STOP_REASON: 'x',
            },
          },
        ],
      },
      ['JOB_NAME', 'BUILD_ID', 'JOB_SPEC', 'SHARED_DIR', 'ARTIFACT_DIR', 'JOB_STOP_REASON'].map(
        (name) => `reserved test.0.env.${name}`,
      ),
    ],
    [{ ...JOB, test: [{ ...STEP, env: { HOLDFAST_X: 'x' } }] }, ['reserved test.0.env.HOLDFAST_X']],
    [{ ...JOB, test: [{ ...STEP, timeout: '25h' }] }, ['out_of_range test.0.timeout']],
    [{ ...JOB, test: [{ ...STEP, gracePeriod: '-1s' }] }, ['invalid test.0.gracePeriod']],
    [{ ...JOB, test: [{ ...STEP, onEviction: 'resume' }] }, ['invalid test.0.onEviction']],
    [
      { ...JOB, test: [{ ...STEP, resources: { limits: { cpu: true } } }] },
      ['invalid test.0.resources.limits.cpu'],
    ],
    [{ ...JOB, test: [{ ...STEP, stop: { target: 'all' } }] }, ['invalid test.0.stop.target']],
    [
      { ...JOB, test: [{ ...STEP, volumes: [{ name: 'a', mountPath: '/a' }] }] },
      ['conflict test.0.volumes.0'],
    ],
    [
      {
        ...JOB,
        test: [{ ...STEP, volumes: [{ name: 'a', mountPath: '/a', secret: {}, emptyDir: {} }] }],
      },
      ['conflict test.0.volumes.0'],
    ],
    [
      {
        ...JOB,
        test: [{ ...STEP, volumes: [{ name: 'a', mountPath: '/holdfast', emptyDir: {} }] }],
      },
      ['reserved test.0.volumes'],
    ],
    [
      {
        ...JOB,
        test: [{ ...STEP, securityContext: { runasUser: 1, capabilities: { add: ['cap_x'] } } }],
      },
      [
        'invalid test.0.securityContext.capabilities.add.0',
        'unknown_field test.0.securityContext.runasUser',
      ],
    ],
    [
      {
        ...JOB,
        source: { event: 'pull_request', untrusted: true },
        test: [{ ...STEP, securityContext: { runAsUser: 1000, privileged: false } }],
      },
      ['denied test.0.securityContext.privileged'],
    ],
    [{ ...JOB, gracePeriod: '34s', post: [STEP_AFTER] }, []],
    [{ ...JOB, gracePeriod: '33s', post: [STEP_AFTER] }, ['conflict test.0.gracePeriod']],
    [
      {
        ...JOB,
        gracePeriod: '1h',
        pre: [{ ...STEP, name: 'prepare', gracePeriod: '1h' }],
        test: [{ ...STEP, gracePeriod: '36m' }],
        post: [{ ...STEP_AFTER, gracePeriod: '2h' }],
      },
      ['conflict pre.0.gracePeriod'],
    ],
    [
      {
        ...JOB,
        gracePeriod: '2s',
        test: [{ ...STEP, gracePeriod: '1s' }],
        post: [STEP_AFTER],
      },
      ['conflict test.0.gracePeriod'],
    ],
    [{ ...JOB, gracePeriod: '1s' }, []],
    [{ ...JOB, test: many(MAX_STEPS) }, []],
    [{ ...JOB, test: many(MAX_STEPS), post: [STEP] }, ['out_of_range pre, test, post']],
    [{ ...JOB, test: [{ ...STEP, commands: 'x'.repeat(1_100_000) }] }, ['out_of_range input']],
    [
      {
        ...JOB,
        test: [
          {
            ...STEP,
            volumes: [
              {
                name: 'a',
                mountPath: '/a',
                emptyDir: JSON.parse('['.repeat(20_000) + ']'.repeat(20_000)) as unknown,
              },
            ],
          },
        ],
      },
      ['invalid input'],
    ],
  ])('%#', (input, expected) => {
    expect(errorsOf(input)).toEqual(expected);
  });
});

test('the security context of a step becomes that of its container', () => {
  const securityContext = { runAsUser: 1000, capabilities: { drop: [] } };
  const [step] = admitted({ ...JOB, test: [{ ...STEP, securityContext }] }).steps;
  expect(step?.runner.pod).toEqual({
    spec: { containers: [{ name: 'runner', securityContext }] },
  });
});

test('a grace period of the job that the worker’s config lowers still leaves time for the post steps', () => {
  const input = { ...JOB, test: [{ ...STEP, gracePeriod: '10m' }], post: [STEP_AFTER] };
  expect(errorsOf(input)).toEqual([]);
  expect(errorsOf(input, { default: { jobs: { gracePeriod: '10m' } } })).toEqual([
    'conflict test.0.gracePeriod',
  ]);
});

describe('defaults and caps of the worker’s config: the most specific one applies', () => {
  const policy: TimeoutPolicy = {
    default: { jobs: { timeout: '3h', gracePeriod: '10m' } },
    scopes: {
      Acme: { jobs: { timeout: '2h' } },
      'acme/slow': { jobs: { timeout: '5h', timeoutCap: '48h' } },
      'acme/strict': { jobs: { timeoutCap: '1h' } },
    },
    jobs: { soak: { timeoutCap: '72h', timeout: '30h' } },
  };
  test.each<[string, object, object]>([
    ['every job’s', JOB, { timeoutMs: 3 * HOUR, gracePeriodMs: HOUR / 6, maxAgeMs: 7 * 24 * HOUR }],
    [
      'an organization’s',
      { ...JOB, repository: 'acme/web' },
      { timeoutMs: 2 * HOUR, gracePeriodMs: HOUR / 6 },
    ],
    ['a repository’s', { ...JOB, repository: 'acme/slow' }, { timeoutMs: 5 * HOUR }],
    ['the job’s', { ...JOB, name: 'soak', repository: 'acme/slow' }, { timeoutMs: 30 * HOUR }],
    ['its own timeout', { ...JOB, name: 'soak', timeout: '1h' }, { timeoutMs: HOUR }],
    [
      'its own timeout, up to the cap',
      { ...JOB, name: 'soak', timeout: '72h' },
      { timeoutMs: 72 * HOUR },
    ],
    [
      'a default over the cap is lowered to it',
      { ...JOB, repository: 'acme/strict' },
      { timeoutMs: HOUR },
    ],
  ])('%s', (_what, input, expected) => {
    expect(admitted(input, policy)).toMatchObject(expected);
  });

  test('the time for its steps’ pods to start also depends on its repository', () => {
    const slow: TimeoutPolicy = {
      default: { podPending: '20m' },
      scopes: {
        'acme/slow': {
          podPending: '30m',
          podUnscheduled: '1h',
          registration: '15m',
          jobTimeout: '3h',
        },
      },
    };
    expect(admitted({ ...JOB, repository: 'acme/slow' }, slow).steps[0]?.runner.timeouts).toEqual({
      podPending: '30m',
      podUnscheduled: '1h',
      registration: '15m',
      jobTimeout: '2h',
    });
    expect(admitted(JOB, slow).steps[0]?.runner.timeouts).toEqual({
      podPending: '20m',
      jobTimeout: '2h',
    });
    expect(admitted(JOB).steps[0]?.runner.timeouts).toEqual({ jobTimeout: '2h' });
  });

  test('only the worker’s config names jobs with a higher cap', () => {
    expect(errorsOf({ ...JOB, timeout: '30h' }, policy)).toEqual(['out_of_range timeout']);
    expect(errorsOf({ ...JOB, name: 'soak', timeout: '73h' }, policy)).toEqual([
      'out_of_range timeout',
    ]);
  });

  test('a name that is also a property of Object.prototype is a valid job name', () => {
    expect(admitted({ ...JOB, name: 'constructor' }, policy)).toMatchObject({
      timeoutMs: 3 * HOUR,
    });
  });
});

describe("an outsider's run", () => {
  const SCRATCH = { name: 'scratch', mountPath: '/scratch', emptyDir: {} };
  const OTHERS = [
    ...['secret', 'persistentVolumeClaim', 'projected', 'hostPath', 'csi', 'nfs', 'ephemeral'].map(
      (kind) => ({ name: kind.toLowerCase(), mountPath: `/${kind}`, [kind]: {} }),
    ),
    { name: 'two', mountPath: '/two', emptyDir: {}, secret: { secretName: 'cloud' } },
  ];
  const job = (volumes: object[], source: object = { untrusted: true }): object => {
    const step = { commands: 'a', volumes };
    return {
      ...JOB,
      pre: [{ ...step, name: 'a' }],
      test: [{ ...step, name: 'b' }],
      post: [{ ...step, name: 'c' }],
      source: { event: 'pull_request', pullRequest: 7, ...source },
    };
  };

  test('may set only harmless fields, in every stage: other fields are rejected', () => {
    expect(
      errorsOf(job([SCRATCH, ...OTHERS])).filter((error) => error.startsWith('denied')),
    ).toHaveLength(3 * OTHERS.length);
    expect(
      errorsOf(job([SCRATCH, ...OTHERS], {})).filter((error) => error.startsWith('denied')),
    ).toEqual([]);
  });

  test('marks all its steps as runs of an outsider', () => {
    expect(admitted(job([SCRATCH])).steps.map(({ runner }) => runner.untrusted)).toEqual([
      true,
      true,
      true,
    ]);
    expect(admitted(job([SCRATCH], {})).steps[0]?.runner).not.toHaveProperty('untrusted');
  });
});
