/** How a set calls its activities. */
import { proxyActivities, proxyLocalActivities, workflowInfo } from '@temporalio/workflow';
import type { SetActivities } from '../../core/calls/index.ts';
import { ciTaskQueue } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const RETRY = { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' } as const;

/** Looking comes after what gives and takes runners away. */
const LOOK_PRIORITY = 5;
/** The next look is never far away. */
const LOOK_TRIES = 2;

/** The first step, as every workflow's. Rejects with `InvalidInput`. */
export function setAdmission(): Pick<SetActivities, 'admitSet'> {
  return proxyLocalActivities<SetActivities>({ startToCloseTimeout: '10s' });
}

/** Calls that need only the worker. No local activities: two at once, with updates between, are not the same in every replay. */
export function workerCalls(summary: string): Pick<SetActivities, 'admitSet' | 'evaluateSchedules' | 'clock'> {
  return proxyActivities<SetActivities>({ summary, startToCloseTimeout: '10s', retry: RETRY });
}

/** Calls to Temporal itself. They are tried until they succeed: without Temporal the set does not run either. */
export function temporalCalls(summary: string): Pick<SetActivities, 'startRunners' | 'drainRunners' | 'listRunners'> {
  return proxyActivities<SetActivities>({ summary, startToCloseTimeout: '2m', heartbeatTimeout: '15s', retry: RETRY });
}

/** The look at the CI server's jobs: on the rate-limited queue of the credential, in turns between scopes. */
export function lookCalls(credential: string, scope: Scope): Pick<SetActivities, 'lookForQueuedJobs'> {
  return proxyActivities<SetActivities>({
    summary: 'look for queued jobs, in case an event was lost',
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '2m',
    scheduleToCloseTimeout: '5m',
    heartbeatTimeout: '15s',
    retry: { ...RETRY, maximumAttempts: LOOK_TRIES },
    priority: { priorityKey: LOOK_PRIORITY, fairnessKey: scope.name.slice(0, 64) },
  });
}
