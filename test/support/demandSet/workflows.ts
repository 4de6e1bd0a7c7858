/** Replaces a set without a memo. It responds to the status query. */
import { condition, setHandler } from '@temporalio/workflow';
import {
  jobEventsSignal,
  setStatusQuery,
  type JobEvent,
  type RunnerSetStatus,
} from '../../../core/contract/index.ts';

export async function runnerSet(status: RunnerSetStatus): Promise<void> {
  const events: JobEvent[] = [];
  setHandler(setStatusQuery, () => ({
    ...status,
    jobs: { ...status.jobs, queued: events.length },
  }));
  setHandler(jobEventsSignal, ({ events: more }) => void events.push(...more));
  await condition(() => false);
}
