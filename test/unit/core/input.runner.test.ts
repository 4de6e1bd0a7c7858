import { describe, expect, test } from '@jest/globals';
import type { z } from 'zod';
import {
  RUNNER_INTERVALS,
  RUNNER_TIMEOUTS,
  STOP_TIMEOUTS,
  type RunnerInput,
} from '../../../core/contract/index.ts';
import { parseRunnerInput, type RunnerSpec } from '../../../core/input/runner.ts';
import type { runnerSchema } from '../../../core/input/runnerSchema.ts';
import type { TimeoutPolicy } from '../../../core/input/timeoutPolicy.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The spec of a valid input. */
function accepted(input: object, workflowId = '', policy: TimeoutPolicy = {}): RunnerSpec {
  const parsed = parseRunnerInput(input, { workflowId, policy });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.spec;
}

/** The errors of an invalid input: `code field`. */
function errorsOf(input: unknown): string[] {
  const parsed = parseRunnerInput(input, { workflowId: 'runner-x' });
  return parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`);
}

/** A compile-time check: the schema accepts the types that the contract documents. (The schema's `satisfies` checks the other direction.) */
const documented = (input: RunnerInput): z.input<typeof runnerSchema> => input;

describe('production defaults', () => {
  /** Changing one of these changes how runners behave in production: on purpose only, with a line in the changelog. */
  const defaults: Omit<RunnerSpec, 'name' | 'scope'> = {
    nameHash: '',
    ciServer: 'github',
    credential: 'default',
    runnerGroup: 'default',
    labels: ['self-hosted'],
    ephemeral: true,
    registrationMode: 'jit',
    disableUpdate: true,
    onEviction: 'fail',
    maxAttempts: 10,
    pod: {
      supervision: {
        runnerKind: 'github',
        ephemeral: true,
        onTerm: 'stop',
        drainTimeoutMs: 0,
        signalTimeoutMs: 10_000,
        cleanupTimeoutMs: 5_000,
        signalTarget: 'group',
        startupTimeoutMs: 10 * MINUTE,
      },
      labels: {},
      terminationGracePeriodSeconds: 30,
      volumeClaims: [],
      jobTimeoutCapMs: 24 * HOUR,
    },
    timeouts: {
      provisioningMs: HOUR,
      podUnscheduledMs: 5 * MINUTE,
      podPendingMs: 10 * MINUTE,
      registrationMs: 10 * MINUTE,
      jobTimeoutMs: 24 * HOUR,
      exitMs: 10 * MINUTE,
      unregistrationMs: HOUR,
      maxAgeMs: 7 * 24 * HOUR,
    },
    intervals: {
      resyncMs: 10 * MINUTE,
      busyRetryMs: MINUTE,
      busyCheckMs: 10 * MINUTE,
      absentCheckMs: 10_000,
      credentialsRetryMs: 5 * MINUTE,
      onlineCheckMs: 2_000,
      removalGraceMs: 2 * MINUTE,
      idleConfirmationMs: 3_000,
      stopResponseTimeoutMs: 30_000,
      listMaxAgeMs: MINUTE,
      lateCreationWindowMs: 150_000,
    },
    warnings: [],
  };

  test('all of them', () => {
    expect(accepted(documented({ organization: 'acme' }), 'runner-a')).toEqual({
      ...defaults,
      name: 'a',
      scope: { kind: 'organization', name: 'acme' },
    });
  });

  test('match the documentation', () => {
    expect({ timeouts: RUNNER_TIMEOUTS, stop: STOP_TIMEOUTS, intervals: RUNNER_INTERVALS }).toEqual(
      {
        timeouts: {
          provisioning: '1h',
          podUnscheduled: '5m',
          podPending: '10m',
          registration: '10m',
          jobTimeout: '24h',
          exit: '10m',
          unregistration: '1h',
          maxAge: '7d',
        },
        stop: { signalTimeout: '10s', cleanupTimeout: '5s' },
        intervals: {
          resync: '10m',
          busyRetry: '1m',
          busyCheck: '10m',
          absentCheck: '10s',
          credentialsRetry: '5m',
          onlineCheck: '2s',
          removalGrace: '2m',
          idleConfirmation: '3s',
          stopResponseTimeout: '30s',
          listMaxAge: '1m',
          lateCreationWindow: '2m30s',
        },
      },
    );
  });

  test.each([
    [undefined, 30],
    [{ signalTimeout: '20s' }, 30],
    [{ signalTimeout: '21s' }, 31],
    [{ cleanupTimeout: '1m' }, 75],
    [{ signalTimeout: '2m', cleanupTimeout: '30s' }, 155],
    [{ signalTimeout: '30s', cleanupTimeout: '100ms' }, 36],
  ])('the grace period for stop %j is %d s', (stop, seconds) => {
    expect(
      accepted({ organization: 'acme', ...(stop && { stop }) }).pod.terminationGracePeriodSeconds,
    ).toBe(seconds);
  });

  test.each([
    ['15s', 25, 15_000, 5_000],
    ['100s', 125, 100_000, 12_500],
    ['8s', 16, 8_000, 4_000],
    ['1s', 3, 1_000, 1_000],
    ['1500ms', 4, 1_500, 1_250],
    ['10ms', 3, 10, 1_495],
    ['30m', 2_250, 1_800_000, 225_000],
  ])(
    'of a step, the grace period %s: the pod has %d s, the command %d ms, cleaning up %d ms, and the command alone gets the signal',
    (gracePeriod, podSeconds, signalTimeoutMs, cleanupTimeoutMs) => {
      const { terminationGracePeriodSeconds, supervision } = accepted(
        { ciServer: 'none', command: ['x'], stop: { gracePeriod } },
        '',
        { default: { signalTimeout: '7s', cleanupTimeout: '7s' } },
      ).pod;
      expect(terminationGracePeriodSeconds).toBe(podSeconds);
      expect(supervision).toMatchObject({
        signalTimeoutMs,
        cleanupTimeoutMs,
        signalTarget: 'process',
        drainTimeoutMs: 0,
      });
    },
  );

  test('the drain timeout of a step is added to its grace period', () => {
    const { terminationGracePeriodSeconds, supervision } = accepted({
      ciServer: 'none',
      command: ['x'],
      onTerm: 'drain',
      stop: { gracePeriod: '15s', drainTimeout: '1m', target: 'group' },
    }).pod;
    expect(terminationGracePeriodSeconds).toBe(85);
    expect(supervision).toMatchObject({
      signalTimeoutMs: 15_000,
      cleanupTimeoutMs: 5_000,
      drainTimeoutMs: 60_000,
      signalTarget: 'group',
    });
  });
});

describe('given values are kept', () => {
  test('a runner group by its name', () => {
    expect(accepted({ organization: 'acme', runnerGroup: 'GPU pool' }).runnerGroup).toEqual({
      name: 'GPU pool',
    });
    expect(errorsOf({ repository: 'acme/app', runnerGroup: 'GPU pool' })).toEqual([
      'not_applicable runnerGroup',
    ]);
  });

  test('all fields at once', () => {
    const pod = { metadata: { labels: { team: 'a' } }, spec: { nodeSelector: { disk: 'ssd' } } };
    const spec = accepted({
      name: 'build', repository: 'acme/app', credential: 'app', runnerGroupId: '3', labels: ['linux', 'gpu: big'], ephemeral: false, disableUpdate: false, set: 'main', namespace: 'ci', image: 'img:1',
      command: ['sh'], args: ['-c', 'x'], env: { A_1: 'b', lower: '' }, pod, onEviction: 'replace', supervisor: 'image', onTerm: 'drain', volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache-1' }],
      stop: { drainTimeout: '1m', signalTimeout: '1s', cleanupTimeout: '2s', signals: 'SIGINT, SIGTERM@500ms', target: 'process', cleanupCommand: ['bye'] },
      timeouts: { provisioning: '2h', podUnscheduled: '1m', podPending: '2m', registration: '3m', idle: '30m', jobTimeout: '90m', unregistration: '4h' },
      intervals: { resync: '1s', busyRetry: '2s', busyCheck: '3s', absentCheck: '4s', credentialsRetry: '5s', onlineCheck: '6s', removalGrace: '7s', idleConfirmation: '9s', stopResponseTimeout: '8s', listMaxAge: '10s', lateCreationWindow: '11s' },
    }); // prettier-ignore
    expect(spec).toEqual({
      name: 'build', nameHash: '', ciServer: 'github', scope: { kind: 'repository', name: 'acme/app' }, credential: 'app', runnerGroup: { id: '3' }, labels: ['linux', 'gpu: big'], ephemeral: false, registrationMode: 'token', disableUpdate: false, set: 'main', onEviction: 'replace', maxAttempts: 10,
      pod: { namespace: 'ci', image: 'img:1', command: ['sh'], args: ['-c', 'x'], env: { A_1: 'b', lower: '' }, template: pod, labels: { 'holdfast.dev/set': 'main' }, terminationGracePeriodSeconds: 68, volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache-1' }], jobTimeoutCapMs: 24 * HOUR,
        supervision: { mode: 'image', runnerKind: 'github', ephemeral: false, onTerm: 'drain', drainTimeoutMs: 60_000, signalTimeoutMs: 1_000, cleanupTimeoutMs: 2_000, signals: 'SIGINT, SIGTERM@500ms', signalTarget: 'process', cleanupCommand: ['bye'], startupTimeoutMs: 3 * MINUTE } },
      timeouts: { provisioningMs: 2 * HOUR, podUnscheduledMs: MINUTE, podPendingMs: 2 * MINUTE, registrationMs: 3 * MINUTE, idleMs: 30 * MINUTE, exitMs: 10 * MINUTE, jobTimeoutMs: 90 * MINUTE, unregistrationMs: 4 * HOUR, maxAgeMs: 7 * 24 * HOUR },
      intervals: { resyncMs: 1_000, busyRetryMs: 2_000, busyCheckMs: 3_000, absentCheckMs: 4_000, credentialsRetryMs: 5_000, onlineCheckMs: 6_000, removalGraceMs: 7_000, idleConfirmationMs: 9_000, stopResponseTimeoutMs: 8_000, listMaxAgeMs: 10_000, lateCreationWindowMs: 11_000 },
      warnings: [expect.stringContaining('GKE')],
    }); // prettier-ignore
  });

  test('an enterprise', () => {
    expect(accepted({ enterprise: 'big' }).scope).toEqual({ kind: 'enterprise', name: 'big' });
  });

  test.each<[what: string, fields: object]>([
    ['a label of 256 characters', { labels: ['x'.repeat(256)] }],
    ['100 labels', { labels: Array.from({ length: 100 }, (_, i) => `l${i}`) }],
    ['a name of 50 characters', { name: 'n'.repeat(50) }],
    ['the longest job timeout', { timeouts: { jobTimeout: '1d' } }],
    ['a name with dots', { name: 'a.b_c-d' }],
  ])('at the limit: %s', (_what, fields) => {
    expect(errorsOf({ organization: 'acme', ...fields })).toEqual([]);
  });

  test.each([
    ['runner-build-1', 'build-1'],
    ['nightly', 'nightly'],
    ['runner-acme/app#7', 'acme-app-7'],
    ['runner-__x', 'x'],
    ['runner-', 'runner'],
    ['', 'runner'],
    ['日本', 'runner'],
    [`runner-${'y'.repeat(80)}`, 'y'.repeat(50)],
  ])('workflow %p names its runner %p', (workflowId, name) => {
    expect(accepted({ organization: 'acme' }, workflowId).name).toBe(name);
    expect(errorsOf({ organization: 'acme', name })).toEqual([]);
  });
});

describe('errors of invalid input name the field and the fix', () => {
  test.each<[what: string, fields: object, expected: string]>([
    ['an unknown field', { lables: ['x'] }, 'unknown_field lables'],
    ['an unknown field of timeouts', { timeouts: { job: '1h' } }, 'unknown_field timeouts.job'],
    ['an unknown field of stop', { stop: { timeout: '1h' } }, 'unknown_field stop.timeout'],
    [
      'an unknown field of intervals',
      { intervals: { poll: '1h' } },
      'unknown_field intervals.poll',
    ],
    ['an unknown field of pod', { pod: { kind: 'Pod' } }, 'unknown_field pod.kind'],
    [
      'an unknown field of pod.metadata',
      { pod: { metadata: { name: 'x' } } },
      'unknown_field pod.metadata.name',
    ],

    ['two scopes', { repository: 'a/b' }, 'conflict organization, repository'],
    [
      'three scopes',
      { repository: 'a/b', enterprise: 'e' },
      'conflict organization, repository, enterprise',
    ],

    [
      'a duration in words',
      { timeouts: { registration: 'ten minutes' } },
      'invalid timeouts.registration',
    ],
    [
      'a duration without a unit',
      { timeouts: { podPending: '10' } },
      'invalid timeouts.podPending',
    ],
    ['a duration of zero', { timeouts: { idle: '0s' } }, 'invalid timeouts.idle'],
    [
      'a duration beyond the range of dates',
      { timeouts: { provisioning: '9999999999h' } },
      'invalid timeouts.provisioning',
    ],
    ['a bad duration of stop', { stop: { signalTimeout: '-1s' } }, 'invalid stop.signalTimeout'],
    ['a bad duration of intervals', { intervals: { resync: '0m' } }, 'invalid intervals.resync'],
    [
      'a job timeout over the cap',
      { timeouts: { jobTimeout: '24h1s' } },
      'out_of_range timeouts.jobTimeout',
    ],

    ['command: empty', { command: [] }, 'out_of_range command'],
    ['image: empty', { image: '' }, 'out_of_range image'],
    ['no label', { labels: [] }, 'out_of_range labels'],
    [
      '101 labels',
      { labels: Array.from({ length: 101 }, (_, i) => `l${i}`) },
      'out_of_range labels',
    ],
    ['an empty label', { labels: ['ok', ''] }, 'invalid labels.1'],
    ['a label with a comma', { labels: ['a,b'] }, 'invalid labels.0'],
    ['a label with a line break', { labels: ['a\nb'] }, 'invalid labels.0'],
    ['a label with a NUL at its end', { labels: ['a\u0000'] }, 'invalid labels.0'],
    ['a label with a C1 control character', { labels: ['a\u0085'] }, 'invalid labels.0'],
    ['a label that begins with a space', { labels: [' a'] }, 'invalid labels.0'],
    ['a label of 257 characters', { labels: ['x'.repeat(257)] }, 'invalid labels.0'],

    ['a name of 51 characters', { name: 'n'.repeat(51) }, 'out_of_range name'],
    ['a name with a space', { name: 'my runner' }, 'invalid name'],
    ['an empty name', { name: '' }, 'invalid name'],
    ['a bad credential', { credential: 'a/b' }, 'invalid credential'],
    ['a bad set', { set: 'a b' }, 'invalid set'],
    ['a bad namespace', { namespace: 'CI' }, 'invalid namespace'],
    ['a bad onEviction', { onEviction: 'retry' }, 'invalid onEviction'],
    ['an environment variable with a bad name', { env: { '1A': 'x' } }, 'invalid env.1A'],
    ['an environment variable with a dash', { env: { 'A-B': 'x' } }, 'invalid env.A-B'],
    [
      'a reserved environment variable',
      { env: { RUNNER_TOKEN: 'x' } },
      'reserved env.RUNNER_TOKEN',
    ],
    [
      'a reserved environment variable of the pod',
      {
        pod: {
          spec: { containers: [{ name: 'runner', env: [{ name: 'RUNNER_NAME', value: 'x' }] }] },
        },
      },
      'reserved pod.spec.containers.0.env.0',
    ],
    [
      'disableUpdate for a runner with a JIT config',
      { disableUpdate: true },
      'not_applicable disableUpdate',
    ],
    ['a path as the id of a group', { runnerGroupId: '../7' }, 'invalid runnerGroupId'],
    [
      'a group by name and by id',
      { runnerGroup: 'gpu', runnerGroupId: '3' },
      'conflict runnerGroup, runnerGroupId',
    ],
    [
      'a reserved container',
      { pod: { spec: { initContainers: [{ name: 'runner' }] } } },
      'reserved pod.spec.initContainers.0',
    ],
    [
      'a reserved volume',
      { pod: { spec: { volumes: [{ name: 'holdfast-x' }] } } },
      'reserved pod.spec.volumes.0',
    ],
    [
      'a reserved label',
      { pod: { metadata: { labels: { 'holdfast.dev/set': 'x' } } } },
      'reserved pod.metadata.labels',
    ],
  ])('%s', (_what, fields, expected) => {
    expect(errorsOf({ organization: 'acme', ...fields })).toEqual([expected]);
  });

  test.each<[what: string, fields: object, field: string]>([
    ['command: a string', { command: 'run.sh' }, 'command'],
    ['command: a number in it', { command: ['sleep', 5] }, 'command.1'],
    ['args: a string', { args: 'x' }, 'args'],
    ['env: a list', { env: ['A=b'] }, 'env'],
    ['env: a number', { env: { A: 1 } }, 'env.A'],
    ['ephemeral: a string', { ephemeral: 'yes' }, 'ephemeral'],
    ['runnerGroup: a number', { runnerGroup: 3 }, 'runnerGroup'],
    ['runnerGroupId: a number', { runnerGroupId: 7 }, 'runnerGroupId'],
    ['labels: a string', { labels: 'linux' }, 'labels'],
    ['labels: null in it', { labels: [null] }, 'labels.0'],
    ['timeouts: a string', { timeouts: '5m' }, 'timeouts'],
    ['timeouts: a number', { timeouts: { idle: 5 } }, 'timeouts.idle'],
    ['pod: a string', { pod: 'x' }, 'pod'],
    ['pod.spec: a list', { pod: { spec: [] } }, 'pod.spec'],
    [
      'pod.metadata.labels: a number',
      { pod: { metadata: { labels: { a: 1 } } } },
      'pod.metadata.labels.a',
    ],
    ['name: null', { name: null }, 'name'],
  ])('a wrong type: %s', (_what, fields, field) => {
    expect(errorsOf({ organization: 'acme', ...fields })).toEqual([`invalid ${field}`]);
  });

  test('no scope', () => {
    expect(errorsOf({})).toEqual(['required organization']);
  });

  test.each([
    'app',
    'a/b/c',
    '/b',
    'a/',
    'a b/c',
    'a/..',
    '../b',
    '../workflows',
    `a/${'x'.repeat(101)}`,
    'https://github.com/a/b',
  ])('the repository %p', (repository) => {
    expect(errorsOf({ repository })).toEqual(['invalid repository']);
  });

  test.each(['a/b', '..', '.', '', 'x'.repeat(101)])('the organization %p', (organization) => {
    expect(errorsOf({ organization })).toEqual(['invalid organization']);
  });

  test.each([null, 'acme', 5, []])('the input %p', (input) => {
    expect(errorsOf(input)).toEqual(['invalid input']);
  });

  test('no input', () => {
    expect(errorsOf(undefined)).toEqual(['required input']);
  });

  test('all errors are reported at once', () => {
    expect(
      errorsOf({ organization: 'a b', labels: [], nonsense: 1, timeouts: { idle: 'x', y: 1 } }).map(
        (line) => line.split(' ')[1],
      ),
    ).toEqual(
      expect.arrayContaining(['organization', 'labels', 'nonsense', 'timeouts.idle', 'timeouts.y']),
    );
    expect(
      errorsOf({
        organization: 'a',
        repository: 'b/c',
        timeouts: { jobTimeout: '25h' },
        env: { RUNNER_NAME: 'x' },
        pod: { spec: { restartPolicy: 'Always' } },
      }),
    ).toHaveLength(4);
  });
});
