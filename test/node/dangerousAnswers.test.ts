import { expect } from '@jest/globals';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import type { PodTemplate } from '../../core/domain/pod.ts';
import { cancelSignal } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { HELD_JOB, type ClusterRun } from '../support/clusterRun.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

/** What a runner that nobody has seen online is given after its removal was confirmed: more than these jobs take. */
const REMOVAL_SETTLE = '60s';
/** More than any wait after which a stop or a removal would be tried another way. */
const HARM_SECONDS = 8;

/** The pod that runs the job is there, and nobody has asked for its end. */
async function expectPodUntouched(run: ClusterRun): Promise<void> {
  const pods = await run.pods();
  expect(
    pods.map(({ metadata, status }) => ({
      deletion: metadata?.deletionTimestamp,
      phase: status?.phase,
    })),
  ).toEqual([{ deletion: undefined, phase: 'Running' }]);
}

/** The answers are given, and have the time to do their harm, if they can; then the job may end. */
async function outlives(
  run: ClusterRun,
  job: { id: number },
  answered: () => boolean,
): Promise<void> {
  await until(`${run.key} to have been answered`, answered, () =>
    JSON.stringify(run.requests('DELETE')),
  );
  await run.goesOn(job, HARM_SECONDS);
  await expectPodUntouched(run);
  await run.letGo();
}
const removals = (run: ClusterRun, times: number, status?: number) => (): boolean =>
  run.requests('DELETE', status).length >= times;

/** While a job runs in a pod: each ends with that job's own last line, whatever the CI server answers. */
const dangers: Record<string, Scenario<ClusterWorld>> = {
  '404 for a credential that lost its scope, static runner': async (world) => {
    const run = await world.start('lost-static', { ephemeral: false });
    const job = await run.runJob(HELD_JOB);
    const fault = world.simulator.addFault({ kind: 'not_found', endpoint: `* /orgs/${run.key}/*` });
    await run.drain();
    await outlives(
      run,
      job,
      () => [...run.requests('DELETE', 404), ...run.requests('GET', 404)].length >= 2,
    );
    await run.waitForLine(job, 'finished');
    world.simulator.clearFaults(fault.id);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '404 for a credential that lost its scope, ephemeral runner': async (world) => {
    const run = await world.start('lost-ephemeral');
    const job = await run.runJob(HELD_JOB);
    const fault = world.simulator.addFault({ kind: 'not_found', endpoint: `* /orgs/${run.key}/*` });
    await run.drain();
    await outlives(run, job, removals(run, 1, 404));
    await run.waitForLine(job, 'finished');
    world.simulator.clearFaults(fault.id);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '204 for an ephemeral runner that has just started a job': async (world) => {
    const run = await world.start('lied-to');
    world.simulator.addFault({
      kind: 'delete_accepts_busy',
      endpoint: `DELETE /orgs/${run.key}/*`,
    });
    const job = await run.runJob(HELD_JOB);
    await run.drain();
    await outlives(run, job, removals(run, 1, 204));
    expect(run.requests('DELETE', 204)).toHaveLength(1);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '204 for a static runner that has just started a job': async (world) => {
    const run = await world.start('lied-to-static', { ephemeral: false });
    world.simulator.addFault({
      kind: 'delete_accepts_busy',
      endpoint: `DELETE /orgs/${run.key}/*`,
    });
    const job = await run.runJob(HELD_JOB);
    await run.drain();
    await outlives(run, job, removals(run, 1, 204));
    expect(run.requests('DELETE', 204)).toHaveLength(1);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '204 at the idle timeout, for a runner that nobody knows to be busy': async (world) => {
    const run = await world.start('idle-timeout', { timeouts: { idle: '20s' } });
    world.simulator.addFault({
      kind: 'delete_accepts_busy',
      endpoint: `DELETE /orgs/${run.key}/*`,
    });
    await run.reaches('idle', ({ phase }) => phase === 'Idle');
    const job = await run.runJob(HELD_JOB);
    await outlives(run, job, removals(run, 1));
    expect(await run.ends()).toMatchObject({
      outcome: 'aborted',
      cause: 'idle_timeout',
      attempt: 1,
    });
    run.expectUnharmed(job);
  },

  'a secondary rate limit in its modern form (403, then 429) during a drain': async (world) => {
    const run = await world.start('limited', { ephemeral: false, credential: 'limited' });
    const job = await run.runJob(HELD_JOB);
    const endpoint = `DELETE /orgs/${run.key}/*`;
    world.simulator.addFault({
      kind: 'secondary_limit',
      status: 403,
      form: 'modern',
      retryAfterS: 2,
      endpoint,
      count: 1,
    });
    world.simulator.addFault({
      kind: 'secondary_limit',
      status: 429,
      form: 'modern',
      retryAfterS: 2,
      endpoint,
      count: 1,
    });
    await run.drain();
    await outlives(run, job, removals(run, 2));
    expect(
      run
        .requests('DELETE')
        .map(({ status }) => status)
        .slice(0, 2),
    ).toEqual([403, 429]);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  'a secondary rate limit that says nothing of how long: no call for a minute, and no verdict':
    async (world) => {
      const run = await world.start('silenced', { credential: 'silenced' });
      const job = await run.runJob(HELD_JOB);
      world.simulator.addFault({
        kind: 'secondary_limit',
        status: 403,
        form: 'modern',
        endpoint: `DELETE /orgs/${run.key}/*`,
        count: 1,
      });
      await run.drain();
      await outlives(run, job, removals(run, 1));
      expect(run.requests('DELETE').map(({ status }) => status)).toEqual([403]);
      expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
      run.expectUnharmed(job);
    },

  'the primary rate limit used up': async (world) => {
    const run = await world.start('spent', { ephemeral: false, credential: 'spent' });
    const job = await run.runJob(HELD_JOB);
    world.simulator.addFault({
      kind: 'primary_limit',
      resetInMs: 3_000,
      endpoint: `DELETE /orgs/${run.key}/*`,
      count: 2,
    });
    await run.drain();
    await outlives(run, job, removals(run, 1, 403));
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  'a busy runner shown as idle and offline': async (world) => {
    const run = await world.start('slandered', { ephemeral: false });
    const endpoint = `GET /orgs/${run.key}/*`;
    const job = await run.runJob(HELD_JOB);
    world.simulator.addFault({ kind: 'busy_lies', endpoint });
    world.simulator.addFault({ kind: 'offline_lies', endpoint });
    await run.drain();
    await outlives(run, job, removals(run, 2));
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '5xx, and connections dropped before and after the effect': async (world) => {
    const run = await world.start('broken', { ephemeral: false });
    const job = await run.runJob(HELD_JOB);
    const endpoint = `DELETE /orgs/${run.key}/*`;
    world.simulator.addFault({ kind: 'status', status: 502, endpoint, count: 1 });
    world.simulator.addFault({ kind: 'drop', when: 'before', endpoint, count: 1 });
    world.simulator.addFault({ kind: 'drop', when: 'after', endpoint, count: 1 });
    await run.drain();
    await outlives(run, job, removals(run, 3));
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  '404 while the runner is about to register: it is not killed, and its first job runs': async (
    world,
  ) => {
    const run = await world.start('late', { ephemeral: false });
    const job = run.queueJob(HELD_JOB);
    await run.reaches('registering', ({ phase }) => phase === 'Registering');
    // Between its registration and its job it is idle, and would be removed rightly: GitHub calls one busy that has been given a job.
    const given = world.simulator.addFault({
      kind: 'delete_says_busy',
      endpoint: `DELETE /orgs/${run.key}/*`,
    });
    await run.drain();
    await run.waitForLine(job, 'begun');
    world.simulator.clearFaults(given.id);
    await outlives(run, job, () => run.requests('GET', 200).length >= 2);
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
  },

  'its registration removed by an owner under a job': async (world) => {
    const run = await world.start('disowned', { ephemeral: false });
    await run.reaches('idle', ({ phase }) => phase === 'Idle');
    const job = await run.runJob(HELD_JOB);
    world.simulator.removeRunner(run.registrations()[0]?.id ?? 0);
    await run.drain();
    await outlives(run, job, removals(run, 1, 404));
    expect(await run.ends()).toMatchObject({ attempt: 1 });
    run.expectUnharmed(job);
  },

  'cancel with mode drain lets the job finish, whatever the CI server says of it': async (
    world,
  ) => {
    const run = await world.start('gentle');
    world.simulator.addFault({ kind: 'busy_lies', endpoint: `GET /orgs/${run.key}/*` });
    const job = await run.runJob(HELD_JOB);
    await run.handle.signal(cancelSignal, { mode: 'drain', reason: 'gently' });
    await outlives(run, job, removals(run, 1));
    expect(await run.ends()).toMatchObject({ outcome: 'aborted', cause: 'cancelled', attempt: 1 });
    run.expectUnharmed(job);
  },
};

/** The runner `late` takes its time to register. */
const SLOW = 'case "$RUNNER_URL" in */late-*) sleep 6;; esac; exec "$@"';
const TEMPLATE: PodTemplate = {
  spec: {
    initContainers: [
      {
        name: 'holdfast-register',
        command: ['sh', '-c', SLOW, 'sh', ...GITHUB_RUNNER.registration.token.command],
      },
    ],
  },
};
const CREDENTIALS = ['limited', 'silenced', 'spent'];

// Without job events nothing but the CI server's answers tells of the job: this is when they are dangerous.
await describeWithLab(
  'misleading responses during a job',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () =>
        await ClusterWorld.open(lab, {
          webhook: false,
          supervisor: false,
          credentials: CREDENTIALS,
          template: TEMPLATE,
          input: { intervals: { removalGrace: REMOVAL_SETTLE } },
        }),
      dangers,
      { afterwards: cleanEnd },
    );
  },
);
