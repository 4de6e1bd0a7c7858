import {
  deleteDefinitionSignal,
  groupedJobId,
  pauseDefinitionSignal,
  resumeDefinitionSignal,
} from '../../core/contract/index.ts';
import type { DefinitionRun } from '../support/definitionRun.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { JobRun, playsByItself } from '../support/jobRun.ts';

/** One declared job on a stage of its own. */
export interface DefinitionStage {
  readonly world: HoldfastWorld;
  readonly compute: FakeCompute;
  readonly ci: FakeCiServer;
  readonly job: DefinitionRun;
}

/** A declared job whose history is recorded: it has to end by itself. */
export interface DefinitionScenario {
  readonly play: (stage: DefinitionStage) => Promise<void>;
  /** @default 1 */
  readonly runs?: number;
}

/** What a declared job may meet. The name is the history's file name. */
export const DEFINITION_SCENARIOS: Readonly<Record<string, DefinitionScenario>> = {
  'declared-job': {
    async play({ compute, ci, job }) {
      playsByItself(compute, 'end');
      ci.changedFiles.set(1, ['docs/a.md']);
      await job.apply({
        on: {
          push: { branches: ['main'] },
          pull_request: { paths: ['src/**'] },
          schedule: [{ cron: '0 3 * * *' }],
        },
        maxConcurrency: 1,
      });
      await job.apply({ test: [] });
      await job.reaches('the refusal', ({ refused }) => refused !== undefined);
      await job.push('main', 'a1');
      await job.push('other', 'a2');
      await job.pull(1, 'b1');
      await job.pull(2, 'b2', { trusted: false });
      await job.pull(3, 'b3');
      await job.reaches(
        'two to be over, and three to be left out',
        ({ ended, leftOut }) => ended.length === 2 && leftOut.length === 3,
      );
      await job.handle.signal(pauseDefinitionSignal, { reason: 'by hand' });
      await job.push('main', 'a3');
      await job.reaches('one to wait', ({ waiting }) => waiting.length === 1);
      await job.handle.signal(resumeDefinitionSignal);
      await job.reaches('it to be over', ({ ended }) => ended.length === 3);
      await job.handle.signal(deleteDefinitionSignal, { reason: 'enough' });
      await job.handle.result();
    },
  },
  'declared-job-continued-as-new': {
    runs: 2,
    async play({ compute, world, job }) {
      playsByItself(compute, 'run');
      await job.apply({ maxConcurrency: 1, intervals: { relook: '1h' } });
      await job.pull(1, 'a1');
      const run = JobRun.of({ world, compute }, groupedJobId(job.group(1), 1));
      await run.runs('test-1');
      const { runId } = await job.handle.describe();
      for (let version = 1; (await job.handle.describe()).runId === runId; version++) {
        await job.push('main', `c${version}`);
        await job.reaches('it to wait', ({ waiting }) => waiting[0]?.version === `c${version}`);
        if (version > 500)
          throw new Error('500 versions, and the server does not suggest to continue as new');
      }
      await run.ends('test-1');
      await JobRun.of({ world, compute }, groupedJobId(job.group('main'), 1)).ends('test-1');
      await job.reaches('both to be over', ({ ended }) => ended.length === 2);
      await job.handle.signal(deleteDefinitionSignal);
      await job.handle.result();
    },
  },
};
