/** State abstraction: what the workflow knows, without details that no decision depends on. */
import type { PodView } from '../../core/domain/pod.ts';
import type { CurrentRunner } from '../../workflows/runner/carriedState.ts';
import { sortKeys } from './interning.ts';
import { STARTED_MS } from './podViews.ts';

/** Ids of the two jobs. */
export const JOB_IDS = { A: '1', B: '2' } as const;
const DAY_MS = 24 * 3_600_000;

/**
 * Returns the runner without details that no decision depends on: exact times of jobs and
 * deadlines, fields of the last view that are not read, and the view that showed its end.
 */
export function abstractRunner(
  {
    busySince,
    busyJobKey,
    jobDeadline,
    jobFailedAt,
    job: _job,
    jobs,
    pod,
    ended,
    idleInDoubtUntilMs,
    ...rest
  }: CurrentRunner,
  { isTerminating }: { readonly isTerminating: boolean },
): CurrentRunner {
  const {
    terminationDeadline: _deadline,
    busy,
    assumedBusyFrom,
    endUnobserved,
    ...view
  } = pod ?? ENDED_VIEW;
  if (rest.podBusy === undefined) Object.assign(view, { busy, assumedBusyFrom });
  if (view.startedAt === undefined) Object.assign(view, { endUnobserved });
  const { running, completed } = jobs;
  // The time of the latest event has no effect after all events.
  const all = completed.length + (running === undefined ? 0 : 1) === Object.keys(JOB_IDS).length;
  return sortKeys({
    ...rest,
    jobs: {
      ...(running === undefined ? {} : { running }),
      completed: completed.toSorted(),
      latestEventAt: all ? 0 : jobs.latestEventAt,
    },
    ...(busySince === undefined || ended !== undefined ? {} : { busySince: STARTED_MS }),
    ...(busyJobKey === undefined || ended !== undefined ? {} : { busyJobKey }),
    ...(jobDeadline === undefined || ended !== undefined
      ? {}
      : { jobDeadline: STARTED_MS + DAY_MS }),
    ...(idleInDoubtUntilMs === undefined ? {} : { idleInDoubtUntilMs: STARTED_MS + DAY_MS }),
    ...(jobFailedAt === undefined ? {} : { jobFailedAt: isTerminating ? jobFailedAt : STARTED_MS }),
    ...(pod === undefined ? {} : { pod: view }),
    ...(ended === undefined ? {} : { ended: ENDED_VIEW }),
  });
}

const ENDED_VIEW: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: '',
  ended: true,
  deleted: false,
  terminating: false,
};
