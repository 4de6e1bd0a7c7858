/** Reruns of jobs at the simulated GitHub, which answers them as GitHub does. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import type { JobReruns } from '../../activities/ports/jobReruns.ts';
import type { RerunJob } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { Fleet } from '../../tools/simulator/fleet.ts';
import type { SimulatedRunner } from '../../tools/simulator/simulatedRunner.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import type { JobSpec } from '../../tools/simulator/types.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';

process.env['HOLDFAST_RERUNS_TOKEN'] = 'ghp_simulator';
const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const LONG = 3_600_000;
/** Lease of a job that is never lost by chance (ms). */
const LEASE_MS = 60_000;
/** Lease of a job that a test awaits the loss of (ms). */
const SHORT_LEASE_MS = 5_000;

let simulator: Simulator;
let fleet: Fleet;
let server: CiServer;
let close: () => Promise<void>;
const reruns = (): JobReruns => server.reruns as JobReruns;
const settings = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: 'pat',
  tokenEnv: 'HOLDFAST_RERUNS_TOKEN',
  apiUrl: simulator.url,
  reruns: true,
  ...more,
});

async function open(leaseMs: number): Promise<void> {
  simulator = await startSimulator({
    tokens: [{ token: 'ghp_simulator', name: 'pat' }],
    leaseMs,
    offlineAfterMs: 200,
  });
  fleet = new Fleet(simulator.url);
  ({ server, close } = ciServerOf(settings()));
}
beforeEach(async () => await open(LEASE_MS));
afterEach(async () => await closeAll());

async function closeAll(): Promise<void> {
  fleet.close();
  await close();
  await simulator.stop();
}

/** Replaces the simulator by one at which jobs of killed runners are lost soon. */
async function shortenLease(): Promise<void> {
  await closeAll();
  await open(SHORT_LEASE_MS);
}

/** A runner that runs a job of this kind. */
async function runningJob(
  name: string,
  more: Partial<JobSpec> = {},
): Promise<{ runner: SimulatedRunner; job: RerunJob; runId: number; id: number }> {
  const { env } = await server.register({
    scope: SCOPE,
    name,
    labels: [name],
    group: 'default',
    ephemeral: true,
    mode: 'jit',
  });
  const runner = fleet.start(env);
  const { id, run_id } = simulator.queueJob({
    repo: 'acme/web',
    labels: [name],
    sleepMs: LONG,
    ...more,
  });
  await simulator.waitForJob(id, 'in_progress');
  return { runner, job: { id: String(id), repository: 'acme/web' }, runId: run_id, id };
}

test('a running job has no conclusion, and GitHub rejects its rerun', async () => {
  const { job, runId } = await runningJob('runs');
  expect(await reruns().getJob(SCOPE, job)).toEqual({
    runId: String(runId),
    attempt: 1,
    runEnded: false,
    runnerName: 'runs',
  });
  expect(simulator.requests().at(-1)?.path).toContain('/actions/jobs/');
  const error = await ciServerError(reruns().rerun(SCOPE, job));
  expect(error).toMatchObject({ kind: 'busy', status: 403 });
});

test('a job of a runner that was killed is rerun in the next attempt, once', async () => {
  await shortenLease();
  const { job, runner, runId, id } = await runningJob('killed');
  runner.kill();
  await simulator.waitForJob(id, 'completed');
  expect(await reruns().getJob(SCOPE, job)).toMatchObject({
    conclusion: 'failure',
    runEnded: true,
    completedAt: expect.any(Number),
  });
  await reruns().rerun(SCOPE, job);
  const again = simulator.jobs().filter((each) => each.run_id === runId);
  expect(again.map(({ run_attempt, status }) => [run_attempt, status])).toEqual([
    [1, 'completed'],
    [2, 'queued'],
  ]);
  expect(await reruns().getJob(SCOPE, job)).toMatchObject({
    attempt: 1,
    latestAttempt: 2,
    rerunAttempt: 2,
    runEnded: false,
  });
});

test('jobs of one run: during the rerun of one the others wait', async () => {
  await shortenLease();
  const one = await runningJob('one', { name: 'build (1)' });
  const two = await runningJob('two', { name: 'build (2)', run_id: one.runId });
  for (const { runner } of [one, two]) runner.kill();
  for (const { id } of [one, two]) await simulator.waitForJob(id, 'completed');
  await reruns().rerun(SCOPE, one.job);
  expect(await ciServerError(reruns().rerun(SCOPE, two.job))).toMatchObject({ kind: 'busy' });
  const waiting = await reruns().getJob(SCOPE, two.job);
  expect(waiting).toMatchObject({ attempt: 1, latestAttempt: 2, runEnded: false });
  expect(waiting).not.toHaveProperty('rerunAttempt');
  const again = simulator.jobs().find(({ run_attempt }) => run_attempt === 2);
  simulator.cancelJob(again?.id ?? 0);
  await reruns().rerun(SCOPE, two.job);
  expect(await reruns().getJob(SCOPE, two.job)).toMatchObject({ rerunAttempt: 3 });
});

test('a shutdown or loss of the runner, a cancellation and a failure of the job are distinguished', async () => {
  await shortenLease();
  const stopped = await runningJob('stopped');
  void stopped.runner.stop();
  const killed = await runningJob('killed');
  killed.runner.kill();
  const cancelled = await runningJob('cancelled');
  simulator.cancelJob(cancelled.id);
  const killedAndCancelled = await runningJob('both');
  killedAndCancelled.runner.kill();
  simulator.cancelJob(killedAndCancelled.id);
  const failed = await runningJob('failed', { sleepMs: 1, result: 'Failed' });
  for (const { id, job, expected } of [
    { ...stopped, expected: 'shutdown' },
    { ...killed, expected: 'lost' },
    { ...cancelled, expected: 'cancelled' },
    { ...killedAndCancelled, expected: 'cancelled' },
    { ...failed, expected: 'none' },
  ]) {
    await simulator.waitForJob(id, 'completed');
    expect(await reruns().endEvidence(SCOPE, job)).toBe(expected);
  }
});

test('jobs that cannot run again are rejected; missing permissions are distinguished from that', async () => {
  const { job, id, runner } = await runningJob('succeeds', { sleepMs: 1 });
  await simulator.waitForJob(id, 'completed');
  await runner.ended;
  expect(await ciServerError(reruns().rerun(SCOPE, job))).toMatchObject({ kind: 'rejected' });
  const unknown = { ...job, id: '99' };
  expect(await ciServerError(reruns().rerun(SCOPE, unknown))).toMatchObject({ kind: 'rejected' });
  expect(await reruns().getJob(SCOPE, unknown)).toBeUndefined();
  const foreign = { ...job, repository: 'other/web' };
  expect(await ciServerError(reruns().getJob(SCOPE, foreign))).toMatchObject({ kind: 'rejected' });
  const failed = await runningJob('fails', { sleepMs: 1, result: 'Failed' });
  await simulator.waitForJob(failed.id, 'completed');
  simulator.setAccess('pat', { permission: 'read' });
  expect(await ciServerError(reruns().rerun(SCOPE, failed.job))).toMatchObject({
    kind: 'credentials',
  });
});

describe('a run that is ended early', () => {
  const runOf = ({ runId }: { runId: number }, attempt = 1) => ({ runId: String(runId), attempt });
  const isOnly = async (of: { job: RerunJob; runId: number }, attempt = 1): Promise<boolean> =>
    await reruns().isOnlyActiveJob(SCOPE, of.job, runOf(of, attempt));

  test('only if no other job of it is running or waiting', async () => {
    const lost = await runningJob('lost', { name: 'build (1)' });
    expect([await isOnly(lost), await isOnly(lost, 2)]).toEqual([true, false]);
    const { id: waiting } = simulator.queueJob({
      repo: 'acme/web',
      labels: ['nobody-has-this'],
      name: 'build (2)',
      run_id: lost.runId,
    });
    expect(await isOnly(lost)).toBe(false);
    simulator.cancelJob(waiting);
    expect(await isOnly(lost)).toBe(true);
    const other = await runningJob('other', { name: 'build (3)', run_id: lost.runId });
    expect([await isOnly(lost), await isOnly(other)]).toEqual([false, false]);
  });

  test('is cancelled by the credential, and can run again', async () => {
    const lost = await runningJob('lost');
    lost.runner.kill();
    await reruns().forceCancel(SCOPE, lost.job, runOf(lost));
    expect(await reruns().getJob(SCOPE, lost.job)).toMatchObject({
      conclusion: 'cancelled',
      runEnded: true,
    });
    expect(await reruns().endEvidence(SCOPE, lost.job)).toBe('cancelled_by_credential');
    // It has ended: no error.
    await reruns().forceCancel(SCOPE, lost.job, runOf(lost));
    await reruns().rerun(SCOPE, lost.job);
    const unknown = { runId: '99' };
    expect(await ciServerError(reruns().forceCancel(SCOPE, lost.job, unknown))).toMatchObject({
      kind: 'rejected',
    });
  });

  test('stays cancelled by the person who cancelled it first', async () => {
    const lost = await runningJob('lost');
    lost.runner.kill();
    simulator.cancelJob(lost.id);
    await reruns().forceCancel(SCOPE, lost.job, runOf(lost));
    expect(await reruns().endEvidence(SCOPE, lost.job)).toBe('cancelled');
  });
});

test('a credential reruns jobs only if its settings allow it, and only in its scopes', async () => {
  const plain = ciServerOf(settings({ reruns: false }));
  expect(plain.server.reruns).toBeUndefined();
  await plain.close();
  const bound = ciServerOf(settings({ scopes: ['other'] }));
  const job = { id: '1', repository: 'acme/web' };
  for (const call of [
    bound.server.reruns?.getJob(SCOPE, job),
    bound.server.reruns?.endEvidence(SCOPE, job),
    bound.server.reruns?.rerun(SCOPE, job),
    bound.server.reruns?.isOnlyActiveJob(SCOPE, job, { runId: '1', attempt: 1 }),
    bound.server.reruns?.forceCancel(SCOPE, job, { runId: '1' }),
  ])
    expect(await ciServerError(call ?? Promise.resolve())).toMatchObject({ kind: 'rejected' });
  expect(simulator.requests()).toEqual([]);
  await bound.close();
});
