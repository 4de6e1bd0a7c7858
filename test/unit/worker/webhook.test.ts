import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { readDelivery } from '../../../worker/webhook.ts';

/** GitHub's own examples. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as { name: string; examples: Record<string, unknown>[] }[];
const workflowJobs = examples.find(({ name }) => name === 'workflow_job')?.examples ?? [];

const job = (fields: object): unknown => ({ action: 'in_progress', workflow_job: { id: 7, runner_name: 'acme-1', runner_id: 3, name: 'build', ...fields } });

describe('reading a delivery', () => {
  test("GitHub's own examples are read, whatever their action", () => {
    expect(workflowJobs.length).toBeGreaterThan(3);
    const kinds = workflowJobs.map((example) => [example['action'], readDelivery('workflow_job', example).kind]);
    expect(kinds).toContainEqual(['queued', 'ignored']); // no runner yet
    expect(kinds).toContainEqual(['completed', 'ignored']); // its runner's name, "GitHub Actions 2", is none of ours
    expect(kinds.map(([, kind]) => kind)).not.toContain('malformed');
  });

  test.each([
    ['queued', 'event'],
    ['in_progress', 'event'],
    ['completed', 'event'],
    ['waiting', 'ignored'],
    ['something_new', 'ignored'],
  ])('action %s: %s', (action, kind) => {
    expect(readDelivery('workflow_job', { ...(job({}) as object), action })).toMatchObject(kind === 'event' ? { kind, event: { action } } : { kind, why: 'other_action' });
  });

  test('passes on what the contract names, and nothing else', () => {
    expect(readDelivery('workflow_job', job({ steps: [{}], extra: 'x' }))).toEqual({
      kind: 'event',
      runnerName: 'acme-1',
      event: { action: 'in_progress', jobId: 7, runnerId: 3, runnerName: 'acme-1', jobName: 'build' },
    });
  });

  test('how a job ended is passed on', () => {
    expect(readDelivery('workflow_job', { ...(job({ conclusion: 'cancelled' }) as object), action: 'completed' })).toMatchObject({ event: { action: 'completed', conclusion: 'cancelled' } });
    expect(readDelivery('workflow_job', job({ conclusion: null }))).not.toHaveProperty('event.conclusion');
  });

  test.each([
    ['null', { runner_id: null, name: null }],
    ['0', { runner_id: 0, name: '' }],
  ])('a runner id of %s is none', (_what, fields) => {
    expect(readDelivery('workflow_job', job(fields))).toMatchObject({ event: { action: 'in_progress', jobId: 7, runnerName: 'acme-1' } });
    expect(readDelivery('workflow_job', job(fields))).not.toHaveProperty('event.runnerId');
  });

  test('a long job name is cut', () => {
    expect(readDelivery('workflow_job', job({ name: 'x'.repeat(5_000) }))).toMatchObject({ event: { jobName: 'x'.repeat(200) } });
  });

  test.each([
    ['none', null],
    ['empty', ''],
    ['with a quote', "a' OR 'a' = 'a"],
    ['with a double quote', 'a" OR RunnerName != "'],
    ['with a backslash', 'a\\'],
    ['with a line break', 'acme-1\n'],
    ['too long', 'a'.repeat(65)],
  ])('a runner name that cannot be ours never gets into a query: %s', (_what, name) => {
    expect(readDelivery('workflow_job', job({ runner_name: name }))).toEqual({ kind: 'ignored', why: 'no_runner' });
  });

  test.each([['a string', 'x'], ['null', null], ['no job', { action: 'queued' }], ['an id that is no number', job({ id: '7' })], ['an id out of range', job({ id: 2 ** 60 })]])('malformed: %s', (_what, body) => {
    expect(readDelivery('workflow_job', body)).toEqual({ kind: 'malformed' });
  });

  test('other events are ignored', () => {
    expect(readDelivery('push', job({}))).toEqual({ kind: 'ignored', why: 'other_event' });
  });
});
