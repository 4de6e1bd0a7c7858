import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, test } from '@jest/globals';
import { jobLines, type JobDetails } from '../../cli/job/getJob.ts';
import { planJob } from '../../cli/job/startJob.ts';
import { runCli } from '../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-cli-job-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (text: string): string => {
  const path = join(folder, 'job.yaml');
  writeFileSync(path, text);
  return path;
};

const WEB = 'name: web\ntest:\n  - name: unit\n    commands: |\n      make deps\n      make test\n';
// Nothing listens there, so valid inputs end with exit status 4.
const NOWHERE = { TEMPORAL_ADDRESS: '127.0.0.1:1' };

test('a file becomes a job with a generated ID', async () => {
  const plan = await planJob(file(WEB));
  expect(plan.workflowId).toMatch(/^job-web-[a-z]+-[a-z]+-[0-9a-f]{4}$/);
  expect(plan.input).toEqual({
    name: 'web',
    test: [{ name: 'unit', commands: 'make deps\nmake test\n' }],
  });
  expect(await planJob(file(WEB), 'mine')).toMatchObject({
    workflowId: 'mine',
    spec: { steps: [{ workflowId: 'mine-test-1' }] },
  });
});

describe('errors are reported before anything starts, with status 2', () => {
  test.each<[what: string, text: string, RegExp]>([
    [
      'one thing',
      `${WEB}    timeout: soon\n`,
      /^error: \S+job\.yaml: test\.0\.timeout is not a duration/,
    ],
    [
      'several',
      `${WEB}timeout: soon\nposts: []\n`,
      /^error: .*job\.yaml.*\n {2}timeout .*\n {2}posts /,
    ],
    ['no name', 'test: []', /name is missing/],
    ['no object', '- a', /^error: --file: .*job\.yaml/],
    ['no YAML', 'a: [', /is neither YAML nor JSON/],
  ])('%s', async (_what, text, expected) => {
    const { status, stderr } = await runCli(['job', 'run', '-f', file(text)], NOWHERE);
    expect(stderr).toMatch(expected);
    expect(status).toBe(2);
  });

  test('--json: as one object', async () => {
    const { status, stderr } = await runCli(
      ['job', 'run', '-f', file(`${WEB}timeout: soon\nposts: []\n`), '--json'],
      NOWHERE,
    );
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: 'invalid_input', fields: [{ field: 'timeout' }, { field: 'posts' }] },
    });
    expect(status).toBe(2);
  });

  test('a valid job reaches Temporal, with warnings that name plaintext values', async () => {
    const { status, stderr } = await runCli(
      ['job', 'run', '-f', file(`${WEB}    env: { TOKEN: abc }\n`)],
      NOWHERE,
    );
    expect(stderr).toMatch(/^warning: unit: env: TOKEN /);
    expect(stderr).not.toContain('abc');
    expect(status).toBe(4);
  });

  test.each([
    [['run']],
    [['list', '--limit', 'all']],
    [['get']],
    [['cancel']],
    [['cancel', 'x', '--mode', 'gently']],
    [['cancel', 'x', '--change-set', 'acme/web#7']],
    [['cancel', '--change-set', 'acme/web']],
    [['logs']],
  ])('holdfast job %j', async (words) => {
    expect(await runCli(['job', ...words], NOWHERE)).toMatchObject({ status: 2 });
  });
});

test('--on-sigterm is for an attached run only', async () => {
  const { status, stderr } = await runCli(
    ['job', 'run', '-f', file(WEB), '--on-sigterm', 'stop'],
    NOWHERE,
  );
  expect(stderr).toMatch(/--on-sigterm: .*--attach/);
  expect(status).toBe(2);
});

describe('a version of a change set', () => {
  test.each<[what: string, args: string[], text: string, RegExp]>([
    [
      'without a repository',
      ['--commit', 'a1', '--base', 'main'],
      WEB,
      /^error: --commit: .*repository/,
    ],
    [
      'without a branch',
      ['--commit', 'a1'],
      `${WEB}repository: acme/web\n`,
      /^error: --commit: .*--base/,
    ],
    [
      'that is invalid',
      ['--commit', 'a 1', '--base', 'main'],
      `${WEB}repository: acme/web\n`,
      /^error: --commit: "a 1"/,
    ],
    [
      'without a pull request',
      ['--commit', 'a1', '--base', 'main', '--pull-request', 'seven'],
      `${WEB}repository: acme/web\n`,
      /^error: --pull-request: "seven"/,
    ],
    ['without a commit', ['--pull-request', '7'], WEB, /^error: --pull-request: .*--commit/],
    ['with an id', ['--commit', 'a1', '--id', 'mine'], WEB, /cannot be used with option '--id/],
  ])('%s: a separate argument', async (_what, args, text, expected) => {
    const { status, stderr } = await runCli(['job', 'run', '-f', file(text), ...args], NOWHERE);
    expect(stderr).toMatch(expected);
    expect(status).toBe(2);
  });
});

describe('the JSON Schema', () => {
  async function accepts(job: object): Promise<boolean> {
    const { stdout } = await runCli(['job', 'schema']);
    return new Ajv2020({ strict: false }).compile(JSON.parse(stdout) as object)(job);
  }
  const STEP = { name: 'unit', commands: 'make test' };

  test.each<[what: string, job: object, accepted: boolean]>([
    [
      'a job',
      {
        name: 'web',
        pre: [STEP],
        test: [STEP],
        post: [
          { ...STEP, bestEffort: true, volumes: [{ name: 'a', mountPath: '/a', emptyDir: {} }] },
        ],
        timeout: '1h',
      },
      true,
    ],
    ['without test', { name: 'web' }, false],
    ['an unknown field', { name: 'web', test: [STEP], tests: [] }, false],
    ['an unknown field of a step', { name: 'web', test: [{ ...STEP, comands: 'x' }] }, false],
    ['bestEffort outside of post', { name: 'web', test: [{ ...STEP, bestEffort: true }] }, false],
    ['an invalid name', { name: 'a b', test: [STEP] }, false],
  ])('%s', async (_what, job, accepted) => {
    expect(await accepts(job)).toBe(accepted);
  });
});

test('one job is shown as its stages with their steps', () => {
  const at = '2026-01-01T00:00:00.000Z';
  const details: JobDetails = {
    id: 'job-web-1',
    runId: 'r',
    name: 'web',
    status: 'RUNNING',
    startedAt: at,
    pendingActivities: [],
    unpolledQueues: [],
    step: { waitingFor: 'runner to come online', waitingUntil: '2026-01-01T04:10:00.000Z' },
    job: {
      waitingFor: 'post clean to end',
      cancel: { mode: 'stop', reason: 'it ran for 4h0m0s (timeout)' },
      log: [],
      steps: [
        {
          stage: 'test',
          name: 'unit',
          workflowId: 'w',
          state: 'ended',
          outcome: 'aborted',
          cause: 'run_timeout',
          startedAt: at,
          endedAt: '2026-01-01T04:00:00.000Z',
          pod: 'pod-1',
          message: 'why',
        },
        {
          stage: 'test',
          name: 'e2e',
          workflowId: 'w',
          state: 'not_run',
          message: 'the job was interrupted',
        },
        {
          stage: 'post',
          name: 'clean',
          workflowId: 'w',
          state: 'running',
          startedAt: '2026-01-01T04:00:00.000Z',
          pod: 'pod-2',
        },
      ],
    },
  };
  const lines = jobLines(details, Date.parse('2026-01-01T04:00:05.000Z'));
  expect(lines).toEqual(
    expect.arrayContaining([
      'Id:               job-web-1',
      'Waits for:        post clean to end',
      'Cancel:           stop: it ran for 4h0m0s (timeout)',
    ]),
  );
  expect(lines.slice(lines.indexOf(''))).toEqual([
    '',
    'STEP      STATE                STARTED   TOOK  POD    WHY',
    'test',
    '├─ unit   aborted/run_timeout  00:00:00  4h    pod-1  why',
    '└─ e2e    not_run              -         -     -      the job was interrupted',
    'post',
    '└─ clean  running              04:00:00  5s    pod-2  waits for runner to come online, until 2026-01-01T04:10:00.000Z',
  ]);
});
