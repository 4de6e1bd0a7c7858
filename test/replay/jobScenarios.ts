import type { WorkflowHandle } from '@temporalio/client';
import {
  JOB_GROUP_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  type JobGroupStatus,
  type JobInput,
  type JobResult,
} from '../../core/contract/index.ts';
import type { MemoryWorld } from '../support/memoryWorld.ts';
import { JobRun, THREE, commandEnds, playsByItself, step } from '../support/jobRun.ts';
import { until } from '../support/until.ts';

/** A job, or the runs of one, whose history is recorded. */
export interface JobScenario {
  readonly play: (world: MemoryWorld, id: string) => Promise<WorkflowHandle>;
  readonly ends: Partial<JobResult> | 'cancelled';
  /** Steps whose lives are recorded, too: `test-1`. */
  readonly steps?: readonly string[];
  /** @default 1 */
  readonly runs?: number;
}

/** As a set of pull request runs at GitHub. */
const GROUPED: JobInput = { name: 'unit', repository: 'acme/web', test: [step('unit')] };

/** Everything that a job may meet, one scenario each. The name is the history's file name. */
export const JOB_SCENARIOS: Readonly<Record<string, JobScenario>> = {
  job: {
    async play(world, id) {
      const run = await JobRun.start(
        world,
        { ...THREE, post: [step('gather', { skipOnSuccess: true }), step('clean')] },
        id,
      );
      for (const name of ['pre-1', 'test-1', 'test-2', 'post-2']) await run.ends(name);
      return run.handle;
    },
    ends: { outcome: 'succeeded' },
    steps: ['pre-1'],
  },
  'job-with-claim': {
    async play(world, id) {
      world.compute.stepStorage = 'claim';
      const run = await JobRun.start(world, THREE, id);
      for (const name of ['pre-1', 'test-1', 'test-2', 'post-1', 'post-2']) await run.ends(name);
      return run.handle;
    },
    ends: { outcome: 'succeeded' },
    steps: ['test-1'],
  },
  'job-interrupted': {
    async play(world, id) {
      world.compute.onDelete = 'linger';
      const run = await JobRun.start(world, THREE, id);
      await run.ends('pre-1');
      const unit = await run.runs('test-1');
      await run.handle.signal('cancel', {
        stopReason: 'superseded',
        reason: 'superseded by a newer commit',
      });
      await until('the step to be stopped', () =>
        world.compute.deletions.some(({ name }) => name === unit),
      );
      commandEnds(world.compute, unit, 143, { reason: 'superseded' });
      world.compute.vanish(unit);
      await run.runs('post-1');
      await run.handle.signal('cancel', 'hurry up');
      await run.ends('post-1', 1);
      await run.ends('post-2');
      return run.handle;
    },
    ends: { outcome: 'aborted', cause: 'superseded' },
    steps: ['test-1'],
  },
  'job-out-of-time': {
    async play(world, id) {
      const run = await JobRun.start(
        world,
        {
          pre: [],
          test: THREE.test.map((each) => ({ ...each, gracePeriod: '1s' })),
          post: THREE.post,
          timeout: '2s',
          gracePeriod: '4s',
        },
        id,
      );
      await run.runs('test-1');
      await run.runs('post-1');
      return run.handle;
    },
    ends: { outcome: 'aborted', cause: 'run_timeout' },
  },
  'job-drained-and-forced': {
    async play(world, id) {
      const run = await JobRun.start(world, { ...THREE, pre: [] }, id);
      await run.runs('test-1');
      await run.handle.signal('cancel', { mode: 'drain', reason: 'later' });
      await run.reaches('a drain', ({ cancel }) => cancel?.mode === 'drain');
      await run.ends('test-1');
      await run.runs('test-2');
      await run.handle.signal('cancel', { mode: 'force', reason: 'now' });
      return run.handle;
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  jobGroup: {
    async play({ world, compute }, workflowId) {
      const come = async (number: number): Promise<WorkflowHandle> => {
        const version = {
          commit: String(number).padStart(40, '0'),
          at: new Date(Date.UTC(2026, 10, 22) + number * 1_000).toISOString(),
          job: GROUPED,
        };
        return await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
          workflowId,
          taskQueue: world.taskQueue,
          args: [],
          signal: jobRevisionSignal,
          signalArgs: [version],
        });
      };
      const handle = await come(1);
      const told = async (number: number): Promise<void> =>
        await until(`version ${number} to be over`, async () => {
          const { runNumber, outcome }: JobGroupStatus = await handle.query(jobGroupStatusQuery);
          return runNumber === number && outcome === 'succeeded';
        });
      // A newer one, while the older one runs.
      await JobRun.of({ world, compute }, groupedJobId(workflowId, 1)).runs('test-1');
      playsByItself(compute, 'end');
      await come(2);
      await told(2);
      const { runId } = await handle.describe();
      for (let number = 3; (await handle.describe()).runId === runId; number++) {
        if (number > 50)
          throw new Error('50 versions, and the server does not suggest to continue as new');
        await come(number);
        await told(number);
      }
      await handle.cancel();
      return handle;
    },
    ends: 'cancelled',
    runs: 2,
  },
};
