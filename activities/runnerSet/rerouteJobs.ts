/** Reroutes jobs that a set cannot serve to other sets, and forwards later events of such jobs. */
import { getClient, log } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { jobEventsSignal, setWorkflowId, type JobEvent } from '../../core/contract/index.ts';
import type {
  RerouteJobsInput,
  RerouteJobsResult,
  Timestamped,
} from '../../core/activities/index.ts';
import { jobKey, parseJobKey } from '../../core/domain/ciJobState.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { RerouteTargets, type RoutableSet } from '../../core/domain/jobRouting.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { forEachLimited } from './forEachLimited.ts';
import { withNormalizedLabels } from './normalizedRouting.ts';
import type { RunningSets } from './runningSets.ts';

/** Maximum age of the list of sets (ms). Their free capacity changes with their jobs. */
const SETS_AGE_MS = 1_000;
/** Maximum events per signal, the same as in the webhook. */
const MAX_EVENTS = 200;

interface SetEvents {
  readonly to: string;
  readonly events: readonly JobEvent[];
}

/**
 * Sends jobs to other sets and forwards events of jobs that were rerouted before. A job for a set
 * that has ended is not in the result and stays with this set. Forwarded events are idempotent.
 * @returns the jobs by the set that has received them, and the number of possible targets
 * @throws the first failure, but only if no set has received a job: a job that a set has received
 * must not be sent to another one
 */
export async function rerouteJobs(
  running: RunningSets,
  { set, routing, jobs, draining, forwardedEvents }: RerouteJobsInput,
): Promise<Timestamped & RerouteJobsResult> {
  return await withHeartbeats(`${jobs.length} jobs to pass on`, async () => {
    const self = { workflowId: setWorkflowId(set), routing: withNormalizedLabels(routing) };
    const others = async (): Promise<RerouteTargets<RoutableSet>> =>
      new RerouteTargets(self, await listSets(running));
    const eventsBySet = new Map<string, JobEvent[]>();
    for (const { to, event } of forwardedEvents) gather(eventsBySet, to, event);
    await forEachLimited(signals(eventsBySet), async (pending) => {
      if (await sendTo(pending)) return;
      // The set has ended and rerouted its jobs before. Which set has them now is unknown, so all
      // get the events.
      for (const to of (await others()).ids()) await sendTo({ ...pending, to });
    });

    const substitutes = jobs.length === 0 ? undefined : await others();
    const targets = new Map<string, JobEvent[]>();
    for (const { key, runId, repository, since } of jobs) {
      const job = parseJobKey(key);
      const to = substitutes?.next(job, { includeFull: draining })?.workflowId;
      if (to !== undefined)
        gather(targets, to, {
          action: 'queued',
          ...job,
          repository,
          labels: [],
          at: since,
          reroutedBy: self.workflowId,
          ...omitUndefined({ runId }),
        });
    }
    const taken: SetEvents[] = [];
    const failures: unknown[] = [];
    await forEachLimited(signals(targets), async (pending) => {
      try {
        if (await sendTo(pending)) taken.push(pending);
      } catch (error) {
        failures.push(error);
      }
    });
    if (failures.length > 0 && taken.length === 0) throw failures[0];
    const rerouted = taken.map(({ to, events }) => ({
      to,
      keys: events.map(jobKey),
    }));
    return { at: Date.now(), rerouted, substitutes: substitutes?.size ?? 0 };
  });
}

/**
 * Lists the sets. While they cannot be listed there are none, and the jobs stay where they are:
 * waiting for the list would keep the set from everything else.
 */
async function listSets(running: RunningSets): Promise<readonly RoutableSet[]> {
  try {
    return (await running.list(SETS_AGE_MS)).sets;
  } catch (error) {
    log.warn('failed to list the sets for rerouting; the jobs stay', { err: error });
    return [];
  }
}

function gather(by: Map<string, JobEvent[]>, to: string, event: JobEvent): void {
  const events = by.get(to) ?? [];
  by.set(to, events);
  events.push(event);
}

function signals(by: ReadonlyMap<string, readonly JobEvent[]>): SetEvents[] {
  return [...by].flatMap(([to, events]) =>
    Array.from({ length: Math.ceil(events.length / MAX_EVENTS) }, (_none, index) => ({
      to,
      events: events.slice(index * MAX_EVENTS, (index + 1) * MAX_EVENTS),
    })),
  );
}

/**
 * Signals events to a set.
 * @returns `false` if the set has ended
 */
async function sendTo({ to, events }: SetEvents): Promise<boolean> {
  try {
    await getClient()
      .workflow.getHandle(to)
      .signal(jobEventsSignal, { events: [...events], at: Date.now() });
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
