import { cancellationSignal } from '@temporalio/activity';
import {
  FAILURE_TYPES,
  type AwaitRerunInput,
  type RerunPlan,
} from '../../core/activities/index.ts';
import {
  MAX_CONCLUSION_MS,
  RUN_CHECK_MS,
  decideByEvidence,
  decideRerun,
  rerunCheckDelayMs,
  type RerunCandidate,
  type RerunDecision,
} from '../../core/domain/rerun.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { JobReruns } from '../ports/jobReruns.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { rejection } from '../shared/rejections.ts';
import { requireParentRunner } from './lostRunner.ts';
import { mayForceCancel } from './mayForceCancel.ts';

const CREDENTIALS_RETRY_MS = 5 * 60_000;

/**
 * Checks once whether the job has ended and may run again. While it has not ended, the attempt
 * fails with the delay until the next check.
 * @throws ApplicationFailure `JobNotEndedYet`, and those of the CI server
 */
export async function awaitRerun(ports: ActivityPorts, input: AwaitRerunInput): Promise<RerunPlan> {
  await requireParentRunner(input.runnerName);
  const check = async (reruns: JobReruns): Promise<RerunPlan> => {
    const { job, decision } = await checkJob(reruns, input);
    switch (decision.kind) {
      case 'rerun':
        return { kind: 'rerun', attempt: job?.attempt ?? 1 };
      case 'skip':
        return { kind: 'skipped', reason: decision.reason };
      case 'wait':
        return decision.for === 'conclusion' && (await mayForceCancel(ports, reruns, input, job))
          ? { kind: 'forceCancel' }
          : waitMore(decision.for, input);
    }
  };
  return await withReruns(ports, input, check, rejectedPlan);
}

/** Returns the plan for a job that the credential or the CI server does not permit to run again. */
export function rejectedPlan(message: string): RerunPlan {
  return { kind: 'failed', reason: 'rejected', message };
}

/** Decision, with the evidence of the CI server where it is needed. */
export interface CheckedRerun {
  /** The job; `undefined` if the CI server does not know it. */
  readonly job?: RerunCandidate;
  readonly decision: Exclude<RerunDecision, { kind: 'prove' }>;
}

/** Reads the job and decides. */
export async function checkJob(reruns: JobReruns, input: AwaitRerunInput): Promise<CheckedRerun> {
  const { scope, job, stoppedAtMs: stoppedAt, runnerName, perRun, recorded } = input;
  const signal = cancellationSignal();
  const found = await reruns.getJob(scope, job, signal);
  if (found === undefined) return { decision: { kind: 'skip', reason: 'job_unknown' } };
  const decision = decideRerun(found, {
    runnerName,
    perRun,
    recorded,
    ...omitUndefined({ stoppedAt }),
  });
  if (decision.kind !== 'prove') return { job: found, decision };
  const evidence = await reruns.endEvidence(scope, job, signal);
  const end = {
    conclusion: found.conclusion,
    forceCancelled: input.forceCancelled === true,
  };
  return { job: found, decision: decideByEvidence(end, evidence) };
}

/**
 * Returns the end of the wait after its maximum duration.
 * @throws ApplicationFailure `JobNotEndedYet` before that
 */
function waitMore(
  what: 'conclusion' | 'run',
  { lostAtMs, job: { id, repository } }: AwaitRerunInput,
): RerunPlan {
  const sinceLossMs = Date.now() - lostAtMs;
  if (what === 'conclusion' && sinceLossMs > MAX_CONCLUSION_MS)
    return { kind: 'failed', reason: 'not_concluded' };
  throw applicationFailure(
    what === 'conclusion'
      ? `job ${id} of ${repository} has not ended yet`
      : `other jobs of the workflow run of job ${id} of ${repository} have not ended yet`,
    FAILURE_TYPES.jobNotEnded,
    {
      nextRetryDelayMs: what === 'run' ? RUN_CHECK_MS : rerunCheckDelayMs(sinceLossMs),
      expected: true,
    },
  );
}

/**
 * Runs a call of the CI server with heartbeats, and maps its errors.
 * @param rejected - result if the credential or the CI server does not permit the call
 */
export async function withReruns<T>(
  { ciServers }: ActivityPorts,
  { credential, job: { id, repository } }: AwaitRerunInput,
  call: (reruns: JobReruns) => Promise<T>,
  rejected: (message: string) => T,
): Promise<T> {
  try {
    return await withHeartbeats(`rerun of job ${id} of ${repository}`, async () => {
      const { reruns } = ciServers.get(credential);
      if (reruns !== undefined) return await call(reruns);
      return rejected(
        `credential "${credential}" may not rerun jobs: set reruns: true in the worker's settings`,
      );
    });
  } catch (error) {
    if (error instanceof CiServerError && error.kind === 'rejected') return rejected(error.message);
    const pace = { credentialsRetryMs: CREDENTIALS_RETRY_MS, busyRetryMs: RUN_CHECK_MS };
    throw nonRetryableAfterDeadline(rejection(error, pace, { isFinal: false }));
  }
}
