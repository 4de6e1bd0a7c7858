/** What a set's workflow may ask of the world. */
import type { SetActivities } from '../../core/calls/index.ts';
import type { ActivityPorts } from '../ports.ts';
import { admitSet } from './admitSet.ts';
import { drainRunners } from './drainRunners.ts';
import { findGone } from './findGone.ts';
import { listRunners } from './listRunners.ts';
import { lookForQueuedJobs } from './lookForQueuedJobs.ts';
import { scheduleNow } from './schedules.ts';
import { startRunners } from './startRunners.ts';

/** Those about runners go to Temporal with the client of the Worker that runs them. */
export function createSetActivities(ports: ActivityPorts): SetActivities {
  return {
    admitSet: async (input) => admitSet(ports, input),
    clock: async () => ({ at: Date.now() }),
    evaluateSchedules: async ({ schedules }) => {
      const at = Date.now();
      return { at, schedule: scheduleNow(schedules, at) };
    },
    startRunners,
    drainRunners,
    listRunners,
    findGone,
    lookForQueuedJobs: (input) => lookForQueuedJobs(ports, input),
  };
}
