/** The activities that the workflow of a set calls. */
import { activityInfo, getClient } from '@temporalio/activity';
import type { CheckQueuedJobsInput, SetActivities } from '../../core/activities/index.ts';
import { ciTaskQueue } from '../../core/contract/index.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { invalidInput } from '../shared/invalidInput.ts';
import { admitSet } from './admitSet.ts';
import { admitSetCommand } from './admitSetCommand.ts';
import { drainRunners } from './drainRunners.ts';
import { findEndedRunners } from './findEndedRunners.ts';
import { listRunners } from './listRunners.ts';
import { checkQueuedJobs } from './checkQueuedJobs.ts';
import { observeCapacity } from './observeCapacity.ts';
import { rerouteJobs } from './rerouteJobs.ts';
import { RunningSets } from './runningSets.ts';
import { activeSchedule } from './schedules.ts';
import type { RunnerEventBatcher } from './runnerEventBatcher.ts';
import { startRunners } from './startRunners.ts';

/**
 * Builds the activities of sets. Activities about runners use the Temporal client of the Worker
 * that runs them.
 */
export function createSetActivities(
  ports: ActivityPorts,
  events: RunnerEventBatcher,
): SetActivities {
  const lists = new Map<string, RunningSets>();
  /** Returns the list of running sets of a task queue, which all sets of the worker share. */
  const running = (taskQueue: string): RunningSets => {
    const list = lists.get(taskQueue) ?? new RunningSets({ client: getClient, taskQueue });
    lists.set(taskQueue, list);
    return list;
  };
  return {
    admitSetCommand: async ({ input }) => admitSetCommand(input),
    admitSet: async (input) => admitSet(ports, input),
    getTime: async () => ({ at: Date.now() }),
    evaluateSchedules: async ({ schedules }) => {
      const at = Date.now();
      return { at, schedule: activeSchedule(schedules, at) };
    },
    startRunners,
    drainRunners,
    listRunners,
    findEndedRunners,
    notifySet: async (input) => await events.notify(input),
    checkQueuedJobs: async (input) => {
      requireOwnTaskQueue(input);
      return await checkQueuedJobs(ports, running(input.taskQueue), input);
    },
    observeCapacity: (input) => observeCapacity(ports, input),
    rerouteJobs: (input) => rerouteJobs(running(activityInfo().taskQueue), input),
  };
}

/**
 * Checks that the named task queue is this worker's own. The worker keeps a list of the sets of each
 * task queue, and anyone who may start an activity can name any.
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if it was not
 */
function requireOwnTaskQueue({ taskQueue, credential }: CheckQueuedJobsInput): void {
  if (ciTaskQueue(taskQueue, credential) === activityInfo().taskQueue) return;
  throw invalidInput([
    {
      code: 'denied',
      field: 'taskQueue',
      message: 'must be the task queue of the calling set',
    },
  ]);
}
