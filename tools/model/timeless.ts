/** What a life believes, without what makes no difference: so there are fewer beliefs. */
import type { PodView } from '../../core/domain/pod.ts';
import type { CurrentRunner } from '../../workflows/runner/carriedState.ts';
import { sorted } from './numbers.ts';
import { STARTED_MS } from './pods.ts';

export const JOB_IDS = { A: '1', B: '2' } as const;
const DAY_MS = 24 * 3_600_000;

/**
 * Without what makes no difference: when exactly a job began, and is due; what a pod showed besides what is asked of its last view; how the
 * view looked by which its end was known.
 */
export function timeless(
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
  told: boolean,
): CurrentRunner {
  const {
    terminationDeadline: _deadline,
    busy,
    assumedBusyFrom,
    endUnobserved,
    ...view
  } = pod ?? STUB;
  if (rest.podBusy === undefined) Object.assign(view, { busy, assumedBusyFrom });
  if (view.startedAt === undefined) Object.assign(view, { endUnobserved });
  const { running, completed } = jobs;
  // What no event can change any more has no time.
  const all = completed.length + (running === undefined ? 0 : 1) === Object.keys(JOB_IDS).length;
  return sorted({
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
    ...(jobFailedAt === undefined ? {} : { jobFailedAt: told ? jobFailedAt : STARTED_MS }),
    ...(pod === undefined ? {} : { pod: view }),
    ...(ended === undefined ? {} : { ended: STUB }),
  });
}

const STUB: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: '',
  ended: true,
  deleted: false,
  terminating: false,
};
