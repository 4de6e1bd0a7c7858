import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { GITHUB_DELIVERIES } from '../../../worker/webhook/servers/github/gitHubDeliveries.ts';
import { parseWorkflowJob as read } from '../../../worker/webhook/servers/github/workflowJob.ts';

/** GitHub's own examples. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as {
  name: string;
  examples: Record<string, unknown>[];
}[];
const workflowJobs = examples.find(({ name }) => name === 'workflow_job')?.examples ?? [];

const NOW = Date.parse('2026-03-01T12:00:00Z');
const QUEUED = '2026-03-01T11:00:00Z';
const STARTED = '2026-03-01T11:00:05Z';
const COMPLETED = '2026-03-01T11:01:05Z';
const readDelivery = (body: unknown): ReturnType<typeof read> => read(body, NOW);
const body = (fields: object, action = 'in_progress'): object => ({
  action,
  workflow_job: {
    id: 7,
    run_attempt: 2,
    labels: ['self-hosted', 'x64'],
    runner_name: 'acme-1',
    runner_id: 3,
    name: 'build',
    created_at: QUEUED,
    started_at: STARTED,
    completed_at: null,
    ...fields,
  },
  repository: { full_name: 'acme/app' },
});

describe('reading a delivery', () => {
  test("GitHub's own examples are read, with every action", () => {
    expect(workflowJobs.length).toBeGreaterThan(3);
    const kinds = workflowJobs.map((example) => [
      example['action'],
      read(example, Date.parse('2021-06-16T00:00:00Z')).kind,
    ]);
    expect(kinds).toContainEqual(['queued', 'job']);
    expect(kinds).toContainEqual(['completed', 'job']);
    expect(kinds.map(([, kind]) => kind)).not.toContain('malformed');
  });

  test.each(['queued', 'in_progress', 'completed'])('action %s is an event of a job', (action) => {
    expect(readDelivery(body({}, action))).toMatchObject({
      kind: 'job',
      delivery: { event: { action }, runner: { event: { action } } },
    });
  });

  test.each(['waiting', 'something_new'])('action %s is ignored', (action) => {
    expect(readDelivery(body({}, action))).toEqual({ kind: 'otherAction' });
  });

  test('passes on exactly the fields of the contract', () => {
    expect(readDelivery(body({ steps: [{}], extra: 'x' }))).toEqual({
      kind: 'job',
      delivery: {
        ciServer: 'github',
        event: {
          action: 'in_progress',
          jobId: '7',
          runAttempt: 2,
          repository: 'acme/app',
          labels: ['self-hosted', 'x64'],
          at: Date.parse(STARTED),
          runnerName: 'acme-1',
        },
        runner: {
          name: 'acme-1',
          event: {
            action: 'in_progress',
            jobId: '7',
            runAttempt: 2,
            at: Date.parse(STARTED),
            runnerId: '3',
            repository: 'acme/app',
            runnerName: 'acme-1',
            jobName: 'build',
          },
        },
        startupMs: 5_000,
      },
    });
  });

  test.each([
    ['queued', {}, QUEUED],
    ['in_progress', {}, STARTED],
    ['completed', { completed_at: COMPLETED }, COMPLETED],
    ['completed', {}, '2026-03-01T12:00:00Z'],
    ['completed', { completed_at: '1970-01-01T00:00:00Z' }, '2026-03-01T12:00:00Z'],
    ['queued', { created_at: 'yesterday' }, '2026-03-01T12:00:00Z'],
  ])('%s %j happened at %s', (action, fields, at) => {
    expect(readDelivery(body(fields, action))).toMatchObject({
      delivery: { event: { at: Date.parse(at) } },
    });
  });

  const DAYS = 24 * 3_600_000;
  const ago = (ms: number): string => new Date(NOW - ms).toISOString();
  test.each<[string, object, object, string]>([
    ['four days', { created_at: ago(4 * DAYS), started_at: null }, {}, 'job'],
    ['a second too old', { created_at: ago(4 * DAYS + 1_000), started_at: null }, {}, 'expired'],
    [
      'an old job that ended just now',
      { created_at: ago(20 * DAYS), started_at: ago(5 * DAYS), completed_at: ago(0) },
      {},
      'job',
    ],
    [
      'an old end',
      { created_at: ago(20 * DAYS), started_at: ago(6 * DAYS), completed_at: ago(5 * DAYS) },
      {},
      'expired',
    ],
    [
      'an old job whose environment was approved just now',
      { created_at: ago(20 * DAYS), started_at: ago(20 * DAYS) },
      { deployment: { updated_at: ago(1_000) } },
      'job',
    ],
    [
      'an old job whose environment was approved long ago',
      { created_at: ago(20 * DAYS), started_at: ago(20 * DAYS) },
      { deployment: { updated_at: ago(5 * DAYS) } },
      'expired',
    ],
    [
      'a deployment without a time',
      { created_at: ago(20 * DAYS), started_at: null },
      { deployment: 7 },
      'expired',
    ],
    ['no time', { created_at: null, started_at: null }, {}, 'job'],
    ['a time in the future', { created_at: ago(-DAYS), started_at: null }, {}, 'job'],
  ])('the age of an event: %s', (_what, fields, more, kind) => {
    expect(readDelivery({ ...body(fields, 'queued'), ...more }).kind).toBe(kind);
  });

  test('a job whose environment needed an approval is queued at its time', () => {
    expect(
      readDelivery({
        ...body({ created_at: ago(DAYS) }, 'queued'),
        deployment: { updated_at: ago(1_000) },
      }),
    ).toMatchObject({ delivery: { event: { at: NOW - 1_000 } } });
  });

  test('the conclusion and duration of a job are passed on', () => {
    const read = readDelivery(
      body({ conclusion: 'cancelled', completed_at: COMPLETED }, 'completed'),
    );
    expect(read).toMatchObject({
      delivery: {
        event: { conclusion: 'cancelled' },
        runner: { event: { conclusion: 'cancelled' } },
        executionMs: 60_000,
      },
    });
    expect(readDelivery(body({ conclusion: null }))).not.toHaveProperty(
      'delivery.event.conclusion',
    );
  });

  test('a job without a runner has no duration', () => {
    expect(
      readDelivery(
        body({ runner_id: null, runner_name: null, completed_at: COMPLETED }, 'completed'),
      ),
    ).not.toHaveProperty('delivery.executionMs');
    expect(readDelivery(body({ started_at: '2026-03-01T10:59:59Z' }))).toMatchObject({
      delivery: { startupMs: 0 },
    });
  });

  test.each([
    ['null', { runner_id: null, name: null }],
    ['0', { runner_id: 0, name: '' }],
  ])('a runner id of %s is treated as absent', (_what, fields) => {
    expect(readDelivery(body(fields))).toMatchObject({
      delivery: { runner: { event: { jobId: '7', runnerName: 'acme-1' } } },
    });
    expect(readDelivery(body(fields))).not.toHaveProperty('delivery.runner.event.runnerId');
  });

  test('absent fields have defaults', () => {
    expect(
      readDelivery(body({ run_attempt: undefined, labels: null, runner_name: '' }, 'queued')),
    ).toEqual({
      kind: 'job',
      delivery: {
        ciServer: 'github',
        event: {
          action: 'queued',
          jobId: '7',
          runAttempt: 1,
          repository: 'acme/app',
          labels: [],
          at: Date.parse(QUEUED),
        },
      },
    });
  });

  test('long texts are cut', () => {
    const long = 'x'.repeat(5_000);
    expect(
      readDelivery({
        ...body({ name: long, conclusion: long, runner_name: long }),
        enterprise: { slug: long },
      }),
    ).toMatchObject({
      delivery: {
        enterprise: 'x'.repeat(100),
        event: { conclusion: 'x'.repeat(40), runnerName: 'x'.repeat(100) },
      },
    });
    expect(readDelivery(body({ name: long }))).toMatchObject({
      delivery: { runner: { event: { jobName: 'x'.repeat(200) } } },
    });
  });

  test.each([
    ['none', null],
    ['empty', ''],
    ['with a quote', "a' OR 'a' = 'a"],
    ['with a double quote', 'a" OR RunnerName != "'],
    ['with a backslash', 'a\\'],
    ['with a line break', 'acme-1\n'],
    ['too long', 'a'.repeat(65)],
  ])('a runner name that is not valid in Holdfast is never used in a query: %s', (_what, name) => {
    const read = readDelivery(body({ runner_name: name }));
    expect(read).toMatchObject({ kind: 'job' });
    expect(read).not.toHaveProperty('delivery.runner');
  });

  test.each([
    ['a string', 'x'],
    ['null', null],
    ['no job', { action: 'queued', repository: { full_name: 'acme/app' } }],
    ['no repository', { ...body({}), repository: undefined }],
    ['an invalid repository', { ...body({}), repository: { full_name: "acme/app' OR '" } }],
    ['an id that is not a number', body({ id: '7' })],
    ['an id out of range', body({ id: 2 ** 60 })],
    ['invalid labels', body({ labels: [1] })],
  ])('malformed: %s', (_what, malformed) => {
    expect(readDelivery(malformed)).toEqual({ kind: 'malformed' });
  });

  test.each([
    ['ping', '{"zen": "Keep it logically awesome."}', 'ping', 200],
    ['star', '{}', 'other_event', 204],
    ['star', '{', 'malformed', 400],
    ['workflow_job', JSON.stringify(body({}, 'waiting')), 'other_action', 204],
    ['workflow_job', JSON.stringify(body({ id: '7' })), 'malformed', 400],
    [
      'workflow_job',
      JSON.stringify(
        body({ completed_at: ago(5 * DAYS), created_at: ago(9 * DAYS), started_at: ago(9 * DAYS) }),
      ),
      'expired',
      422,
    ],
  ])('event %s with %s has the response %s', (event, text, outcome, status) => {
    const headers = { 'x-github-event': event };
    expect(GITHUB_DELIVERIES.read(headers, Buffer.from(text), NOW)).toMatchObject({
      outcome,
      status,
    });
  });
});
