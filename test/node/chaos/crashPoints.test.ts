import { expect } from '@jest/globals';
import { cancelSignal } from '../../../core/contract/index.ts';
import { countingJob, type ClusterRun } from '../../support/clusterRun.ts';
import { cleanEnd } from '../../support/demoRunners.ts';
import { describeWithLab } from '../../support/lab.ts';
import { together, type Scenario } from '../../support/together.ts';
import { CrashWorld } from './crashWorld.ts';
import { partaking } from './partaking.ts';
import type { ProxiedRequest } from './withholdingProxy.ts';

type Matcher = (request: ProxiedRequest) => boolean;

/** A life's key, and with it its organization, workflow and pod, begins with the name that it is started with. */
const gitHubCall =
  (method: string, name: string, call: RegExp): Matcher =>
  (request) =>
    request.method === method &&
    request.path.startsWith(`/orgs/${name}-`) &&
    call.test(request.path);
const creation =
  (kind: 'pods' | 'secrets', name: string): Matcher =>
  ({ method, path, body }) =>
    method === 'POST' &&
    new RegExp(`/${kind}(\\?|$)`).test(path) &&
    body.includes(`runner-${name}-`);
const deletion =
  (kind: 'pods' | 'secrets', name: string): Matcher =>
  ({ method, path }) =>
    method === 'DELETE' && path.includes(`/${kind}/runner-${name}-`);
const DELETE_RUNNER = /\/actions\/runners\/\d+$/;

/** How often a life asked GitHub to add or to remove, by what it was answered. */
function changesAtGitHub(run: ClusterRun): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { endpoint, status } of [...run.requests('POST'), ...run.requests('DELETE')]) {
    const key = `${endpoint.split(/[ /]/, 1)[0]} ${status}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** A static runner that has done a job and is idle. */
async function startedAndUsed(
  crash: CrashWorld,
  name: string,
): Promise<{ run: ClusterRun; job: { id: number } }> {
  const run = await crash.world.start(name, { ephemeral: false });
  const job = await run.runJob(countingJob(1));
  await run.waitForLine(job, 'finished');
  await run.reaches('idle', ({ phase }) => phase === 'Idle');
  return { run, job };
}

const lives: Record<string, Scenario<CrashWorld>> = {
  'JIT config made, not yet stored: that registration is removed before the same name is registered again':
    async (crash) => {
      await crash.ready();
      const point = crash.gitHub.withhold(gitHubCall('POST', 'jit', /\/generate-jitconfig$/));
      const run = await crash.world.start('jit');
      const job = run.queueJob(countingJob(2));
      await crash.crashesAt(point, 201);
      const result = await run.ends();
      expect(result).toMatchObject({ outcome: 'succeeded', attempt: 1, replacements: [] });
      run.expectUnharmed(job);
      expect(changesAtGitHub(run)).toEqual({ 'POST 201': 2, 'POST 409': 1, 'DELETE 204': 1 });
      expect(run.job(job)).toMatchObject({
        runner_name: result.runnerName,
        runner_id: Number(result.runnerId),
      });
      expect(run.podsEver()).toHaveLength(1);
    },

  'registration token made, not yet stored: another token, one registration': async (crash) => {
    await crash.ready();
    const point = crash.gitHub.withhold(gitHubCall('POST', 'token', /\/registration-token$/));
    const run = await crash.world.start('token', { ephemeral: false });
    const job = run.queueJob(countingJob(2));
    await crash.crashesAt(point, 201);
    await run.waitForLine(job, 'finished');
    await run.drain();
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 1,
      replacements: [],
      runnerId: String(run.job(job).runner_id),
    });
    run.expectUnharmed(job);
    expect({ tokens: run.registeredEver(), removed: run.requests('DELETE', 204).length }).toEqual({
      tokens: 2,
      removed: 1,
    });
    expect(run.podsEver()).toHaveLength(1);
  },

  'Secret made, no pod yet: its registration is used, none is made again': async (crash) => {
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('secrets', 'secret'));
    const run = await crash.world.start('secret');
    const job = run.queueJob(countingJob(2));
    await crash.crashesAt(point, 201);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1, replacements: [] });
    run.expectUnharmed(job);
    expect(changesAtGitHub(run)).toEqual({ 'POST 201': 1 });
    expect(run.podsEver()).toHaveLength(1);
  },

  'pod made: it runs its job with no worker alive, and no second one is made': async (crash) => {
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('pods', 'pod'));
    const run = await crash.world.start('pod');
    const job = run.queueJob(countingJob(2));
    await crash.crashesAt(point, 201);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1, replacements: [] });
    run.expectUnharmed(job);
    expect(run.registeredEver()).toBe(1);
    expect(run.podsEver()).toHaveLength(1);
  },

  'registration of a drained runner removed: its absence is told from a runner that never was':
    async (crash) => {
      const { run, job } = await startedAndUsed(crash, 'removed');
      await crash.ready();
      const point = crash.gitHub.withhold(gitHubCall('DELETE', 'removed', DELETE_RUNNER));
      await run.drain();
      await crash.crashesAt(point, 204);
      expect(await run.ends()).toMatchObject({
        outcome: 'succeeded',
        attempt: 1,
        replacements: [],
      });
      run.expectUnharmed(job);
      expect(changesAtGitHub(run)).toMatchObject({ 'POST 201': 1, 'DELETE 204': 1 });
      expect(run.podsEver()).toHaveLength(1);
    },

  'registration of a vanished runner removed: replaced once': async (crash) => {
    const run = await crash.world.start('vanished');
    const { pod, runnerName: lost } = await run.listens();
    await crash.ready();
    const point = crash.gitHub.withhold(gitHubCall('DELETE', 'vanished', DELETE_RUNNER));
    await run.deletePod(pod, 0);
    await crash.crashesAt(point, 204);
    const { runnerName } = await run.listens(2);
    const job = run.queueJob(countingJob(2));
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      runnerName,
      replacements: [{ runnerName: lost, cause: 'deleted_externally', replacedBy: runnerName }],
    });
    run.expectUnharmed(job);
    expect(changesAtGitHub(run)).toMatchObject({ 'POST 201': 2, 'DELETE 204': 1 });
    expect(run.podsEver()).toHaveLength(2);
  },

  'graceful stop of a busy pod asked for: the job is interrupted once, in its grace': async (
    crash,
  ) => {
    const run = await crash.world.start('stopped');
    const job = await run.runJob(countingJob(600));
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('pods', 'stopped'));
    await run.handle.signal(cancelSignal, { mode: 'stop', reason: 'by hand' });
    await crash.crashesAt(point, 200);
    expect(await run.ends()).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      attempt: 1,
      replacements: [],
    });
    run.expectInterrupted(job);
    expect(run.registeredEver()).toBe(1);
    expect(run.podsEver()).toHaveLength(1);
  },

  'pod deleted after its job': async (crash) => {
    const run = await crash.world.start('deleted');
    await run.listens();
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('pods', 'deleted'));
    const job = run.queueJob(countingJob(2));
    await crash.crashesAt(point, 200);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1, replacements: [] });
    run.expectUnharmed(job);
    expect(changesAtGitHub(run)).toEqual({ 'POST 201': 1 });
    expect(run.podsEver()).toHaveLength(1);
  },

  'Secret deleted after the job': async (crash) => {
    const run = await crash.world.start('forgotten');
    await run.listens();
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('secrets', 'forgotten'));
    const job = run.queueJob(countingJob(2));
    await crash.crashesAt(point, 200);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1, replacements: [] });
    run.expectUnharmed(job);
    expect(changesAtGitHub(run)).toEqual({ 'POST 201': 1 });
    expect(run.podsEver()).toHaveLength(1);
  },
};

await describeWithLab(
  'worker killed between a side effect and its completion',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    const afterwards = Object.fromEntries(
      Object.entries(cleanEnd).map(([name, end]): [string, Scenario<CrashWorld>] => [
        name,
        async ({ world }) => await end(world),
      ]),
    );
    together(async () => await CrashWorld.open(lab, Object.keys(lives).length), partaking(lives), {
      afterwards,
    });
  },
);
