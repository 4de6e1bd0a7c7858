import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { WORKFLOW_ID_ANNOTATION } from '../../../activities/compute/kubernetes/metadata.ts';
import type { SimulatedJob } from '../../../tools/simulator/types.ts';
import type { RunnerSetStatus } from '../../../core/contract/index.ts';
import { runnerWorkflowIdFromName } from '../../../core/domain/setRunnerNames.ts';
import { describeWithLab } from '../../support/lab.ts';
import { FleetWorld, type FleetSet } from './fleetWorld.ts';

/** Until a test ends it. */
const ENDLESS_MS = 3_600_000;

await describeWithLab('fleets', { temporal: true, nodes: 'kwok' }, (lab) => {
  let fleet: FleetWorld;

  beforeEach(async () => {
    fleet = await FleetWorld.open(lab);
  });
  afterEach(async () => {
    await fleet.close();
  });

  const jobOf = ({ id }: { id: number }): SimulatedJob | undefined => fleet.world.simulator.job(id);

  test('a rollout under jobs, with a worker killed: no busy runner is interrupted, and old runners end after their jobs', async () => {
    const waits = {
      scaleDownDelay: '1s',
      recreationGuard: '5s',
      queueCheck: '5s',
      intervals: { relist: '5s', initialRetry: '300ms', maxRetry: '2s', guardCheck: '1s' },
    };
    const statics = await fleet.startSet({ replicas: 3, template: { ephemeral: false }, ...waits });
    const ephemerals = await fleet.startSet({ minIdle: 1, max: 6, ...waits });
    const both = [statics, ephemerals];
    const inState = ({ runners }: RunnerSetStatus, wanted: string): number =>
      runners.filter(({ state }) => state === wanted).length;
    await statics.reaches('three idle', (status) => inState(status, 'idle') === 3);
    await ephemerals.reaches('one idle', (status) => inState(status, 'idle') === 1);

    const running = (job: SimulatedJob): boolean => jobOf(job)?.status === 'in_progress';
    const work = both.map((set) => ({
      set,
      jobs: [set.queueJob({ sleepMs: ENDLESS_MS }), set.queueJob({ sleepMs: ENDLESS_MS })],
    }));
    await fleet.until('four jobs to run', () => work.every(({ jobs }) => jobs.every(running)));
    for (const set of both)
      await set.reaches(
        'two busy, one idle',
        (status) =>
          inState(status, 'busy') === 2 &&
          inState(status, 'idle') === 1 &&
          status.runners.length === 3,
      );

    const before = new Map<string, string>();
    for (const set of both) {
      before.set(set.name, (await set.status()).templateHash);
      await set.tell({
        command: 'setTemplate',
        template: set.template({
          ...(set === statics && { ephemeral: false }),
          env: { CHANGED: 'yes' },
        }),
      });
    }
    const old = (set: FleetSet, { runners }: RunnerSetStatus): RunnerSetStatus['runners'] =>
      runners.filter(({ templateHash }) => templateHash === before.get(set.name));
    const comesTo = async (set: FleetSet, left: number): Promise<RunnerSetStatus> => {
      const fresh = (status: RunnerSetStatus): number =>
        status.runners.filter(
          (runner) => runner.state === 'idle' && runner.templateHash === status.templateHash,
        ).length;
      // Of static ones, the next that leaves is known: another's end would leave that one's job to be waited for, which has none.
      const chosen = (status: RunnerSetStatus): boolean =>
        set === ephemerals || inState(status, 'draining') === 1;
      return await set.reaches(
        `${left} of the old, two of the new`,
        (status) => old(set, status).length === left && fresh(status) >= 2 && chosen(status),
      );
    };
    /** Whoever runs one of these jobs is as it was. */
    const untouched = async (set: FleetSet, jobs: readonly SimulatedJob[]): Promise<void> => {
      const { core, name: namespace } = fleet.world.namespace;
      const pods = (await core.listNamespacedPod({ namespace })).items;
      for (const job of jobs.map(jobOf)) {
        expect(job).toMatchObject({ status: 'in_progress', assignments: 1 });
        expect(fleet.world.simulator.runner(job?.runner_name ?? '')).toMatchObject({
          status: 'online',
          busy: true,
          jobId: job?.id,
        });
        const pod = pods.find(
          ({ metadata }) =>
            metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ===
            runnerWorkflowIdFromName(set.name, job?.runner_name ?? ''),
        );
        expect(pod).toMatchObject({ status: { phase: 'Running' } });
        expect(pod?.metadata?.deletionTimestamp).toBeUndefined();
      }
    };

    for (const left of [2, 1]) {
      if (left === 1) await fleet.replaceWorker();
      for (const { set, jobs } of work) {
        const status = await comesTo(set, left);
        expect(status.waitingFor).toContain(
          `rollout: ${left} runners of an earlier template are left`,
        );
        expect(jobs.filter(running)).toHaveLength(left);
        await untouched(set, jobs.filter(running));
        // The next one is drained when that one has left: there are never more runners than one beyond those wanted.
        const leaving = status.runners.find(({ state }) => state === 'draining')?.runnerName;
        const ends = jobs
          .map(jobOf)
          .findLast(
            (job) =>
              job !== undefined &&
              running(job) &&
              (leaving === undefined || job.runner_name === leaving),
          );
        fleet.world.simulator.cancelJob(ends?.id ?? 0);
      }
    }
    await statics.reaches(
      'three of the new alone',
      (status) =>
        old(statics, status).length === 0 &&
        inState(status, 'idle') === 3 &&
        status.runners.length === 3,
    );
    await ephemerals.reaches(
      'one of the new alone',
      (status) =>
        old(ephemerals, status).length === 0 &&
        inState(status, 'idle') === 1 &&
        status.runners.length === 1,
    );
    // Each ended because its user canceled it, and none was lost.
    for (const job of work.flatMap(({ jobs }) => jobs).map(jobOf)) {
      expect(job).toMatchObject({ conclusion: 'cancelled', cancelRequested: true, assignments: 1 });
      expect(job?.annotation).toMatch(/^The run was canceled by /u);
    }

    for (const set of both) expect((await set.end()).jobs).toMatchObject({ queued: 0, running: 0 });
    await fleet.leavesNothing();
  }, 300_000);
});
