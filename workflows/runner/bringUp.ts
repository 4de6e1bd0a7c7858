/** Brings a runner online: provisioning, start of the pod, registration. */
import { sleep } from '@temporalio/workflow';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  FAILURE_TYPES,
  type FoundProvision,
  type ProvisionResult,
} from '../../core/activities/index.ts';
import {
  callUnless,
  ciActivities,
  clusterActivities,
  clusterProvisioning,
  type CallResult,
} from '../shared/activityProxies.ts';
import { awaitClaims } from './claims.ts';
import { decideStartup } from './startupDecision.ts';
import type { RunnerCause } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import type { SupervisorConfig } from '../../core/domain/pod.ts';
import type { AttemptFailure } from './carriedState.ts';
import { remainingJobMs } from './jobDeadline.ts';
import { commandStarted } from './runnerActivity.ts';
import type { RunnerState } from './state.ts';
import { awaitPodEnd, awaitPod, recordPod } from './podWaits.ts';
import { setMemo } from './notifySet.ts';
import { notifyJobPodCreated } from './notifyJob.ts';

/**
 * Causes of the activity failure types (activities/shared/failures.ts) that have a cause of their
 * own.
 */
const CAUSES: Readonly<Record<string, RunnerCause>> = {
  QuotaExceeded: 'quota_exceeded',
  PodInvalid: 'pod_rejected',
  ComputeRejected: 'pod_rejected',
  CredentialsRejected: 'credentials',
  UnknownCredential: 'credentials',
  CiServerUnavailable: 'ci_server_unreachable',
  RateLimited: 'ci_server_unreachable',
};

/**
 * Failures that are definite responses of the cluster or the CI server: no part of the request is
 * still in progress.
 */
const DEFINITE_FAILURES: ReadonlySet<string | undefined> = new Set(
  (
    [
      'superseded',
      'name_taken',
      'rejected',
      'credentials',
      'unknownCredential',
      'rate_limited',
      'quota_exceeded',
      'podInvalid',
      'computeForbidden',
      'wrongLocation',
    ] as const
  ).map((kind) => FAILURE_TYPES[kind]),
);

/** Names end in 10 random hex digits, so more than one collision is not chance. */
const MAX_NAMES = 3;

/**
 * Brings the runner online. Returns early, without a failure, if the runner has ended or a cancel
 * arrived.
 */
export async function bringUp(state: RunnerState): Promise<AttemptFailure | undefined> {
  state.enterPhase('Provisioning');
  const failure = await provision(state);
  if (failure !== undefined || state.cancel !== undefined) return failure;
  return await awaitOnline(state);
}

async function provision(state: RunnerState): Promise<AttemptFailure | undefined> {
  const { spec } = state;
  const withinMs = spec.timeouts.provisioningMs;
  const held = await awaitClaims(state);
  if (held !== undefined)
    return {
      message: `The runner could not be provisioned: ${held} (tried for ${formatDuration(withinMs)})`,
    };
  if (state.cancel !== undefined) return undefined;
  let called: CallResult<ProvisionResult>;
  let names = 1;
  do {
    state.setWaitReason('registration, Secret and pod', Date.now() + withinMs);
    called = await tryToProvision(state, withinMs);
    // A runner that is not ours has the name. We must neither use nor remove anything that belongs
    // to it.
    if (lastFailure(called) === FAILURE_TYPES.name_taken) state.replaceRunner();
  } while (shouldRetry(called, names++) && state.cancel === undefined);
  const { pod, runnerId } =
    called.kind === 'done' ? called.value : await findCreated(state, mayHaveCreated(called));
  const { runner } = state;
  if (runnerId !== undefined) runner.id = runnerId;
  if (pod === undefined && called.kind !== 'done' && mayHaveCreated(called))
    runner.podInDoubt = true;
  if (pod !== undefined) {
    runner.pod = pod;
    recordPod(state, pod);
    const lost = state.replacements.at(-1);
    if (lost?.replacedBy === '') lost.replacedBy = state.runnerName;
    awaitPodEnd(state);
    void notifyJobPodCreated(state);
  }
  if (called.kind === 'failed') {
    const cause = CAUSES[called.type];
    const tried = called.timedOut ? ` (tried for ${formatDuration(withinMs)})` : '';
    const message = `The runner could not be provisioned: ${called.message}${tried}`;
    return { message, ...omitUndefined({ cause }) };
  }
  return undefined;
}

function lastFailure(called: CallResult<ProvisionResult>): string | undefined {
  if (called.kind === 'failed') return called.type;
  return called.kind === 'interrupted' ? called.lastFailure : undefined;
}

/**
 * Whether provisioning is to be repeated. A call that was never started has not failed: thousands
 * of calls may be ahead of it, at the rate that the CI server allows. A name collision is retried
 * with another name.
 */
export function shouldRetry(called: CallResult<ProvisionResult>, names: number): boolean {
  return (
    called.kind === 'failed' &&
    (called.untried || (called.type === FAILURE_TYPES.name_taken && names < MAX_NAMES))
  );
}

/**
 * Whether an attempt of the call may still create something. It cannot if it was never started or
 * ended with a definite response.
 */
export function mayHaveCreated(
  called: Exclude<CallResult<ProvisionResult>, { kind: 'done' }>,
): boolean {
  if (called.kind === 'failed' && called.timedOut) return !called.untried;
  return !DEFINITE_FAILURES.has(lastFailure(called));
}

/**
 * Returns the objects that an interrupted provisioning has created. While creation is still
 * possible (by a worker that lost its connection, or by a request that is executed late), an empty
 * result proves nothing. The search is then repeated after the window for late creation.
 */
async function findCreated(state: RunnerState, inDoubt: boolean): Promise<FoundProvision> {
  const found = await findProvisioned(state);
  if (!inDoubt || found.pod !== undefined) return found;
  const { lateCreationWindowMs } = state.spec.intervals;
  state.setWaitReason(
    'objects that the interrupted provisioning may still create',
    Date.now() + lateCreationWindowMs,
  );
  await sleep(lateCreationWindowMs, {
    summary: 'Wait for the interrupted provisioning',
  });
  return await findProvisioned(state);
}

async function tryToProvision(
  state: RunnerState,
  withinMs: number,
): Promise<CallResult<ProvisionResult>> {
  const { spec, runner } = state;
  const { podUnscheduledMs, podPendingMs } = spec.timeouts;
  const input = {
    location: spec.location,
    runnerName: state.runnerName,
    pod: {
      identity: runner.identity,
      ...spec.pod,
      supervision: supervisionOf(state),
      ...omitUndefined({ notifyBusy: setMemo().notifyBusy }),
    },
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
    completeWithinMs: Math.min(podUnscheduledMs, podPendingMs),
  };
  return await callUnless(
    () => state.cancel !== undefined,
    async () => {
      if (spec.scope === undefined)
        return await clusterProvisioning({ summary: 'Create the pod', withinMs }).provision(input);
      const registration = {
        scope: spec.scope,
        labels: spec.labels,
        group: spec.runnerGroup,
        ephemeral: spec.ephemeral,
        mode: spec.registrationMode,
        disableUpdate: spec.disableUpdate,
        ...omitUndefined({ scaleSet: spec.scaleSet?.name }),
      };
      const calls = ciActivities(spec.credential, spec.scope, 'provision', {
        summary: 'Register the runner, create its pod',
        withinMs,
      });
      return await calls.provision({
        ...input,
        ciServer: { credential: spec.credential, registration },
      });
    },
  );
}

/**
 * Returns the supervisor's configuration. The pod enforces a plain command's timeout, limited here
 * to the time that previous attempts have left.
 */
function supervisionOf(state: RunnerState): SupervisorConfig {
  const { timeoutMs, ...supervision } = state.spec.pod.supervision;
  const remainingMs = remainingJobMs(state);
  return {
    ...supervision,
    ...omitUndefined({ timeoutMs: timeoutMs && Math.min(timeoutMs, Math.max(1, remainingMs)) }),
  };
}

async function findProvisioned({ spec, runner }: RunnerState): Promise<FoundProvision> {
  const input = {
    location: spec.location,
    identity: runner.identity,
    hasRegistration: spec.scope !== undefined,
    ...omitUndefined({ namespace: spec.pod.namespace }),
  };
  return await clusterActivities({
    summary: 'Find objects of the interrupted provisioning',
  }).findProvisioned(input);
}

async function awaitOnline(state: RunnerState): Promise<AttemptFailure | undefined> {
  const { spec, runner } = state;
  const createdAt = Date.now();
  while (state.cancel === undefined && runner.pod !== undefined) {
    const step = decideStartup(
      runner.pod,
      Date.now() - createdAt,
      state.sinceStartedMs,
      spec.timeouts,
    );
    switch (step.kind) {
      case 'ended':
        runner.ended = runner.pod;
        return undefined;
      case 'online':
        markOnline(state);
        return undefined;
      case 'running':
        if (spec.scope !== undefined) return await awaitRegistration(state);
        markOnline(state);
        return undefined;
      case 'failed':
        return { cause: step.cause, message: `The runner did not come up: ${step.message}.` };
      case 'wait':
        if (runner.pod.startedAt !== undefined && spec.scope !== undefined)
          state.enterPhase('Registering');
        state.setWaitReason(step.why, Date.now() + step.forMs);
        await awaitPod(state, 'online', step.forMs);
    }
  }
  return undefined;
}

function markOnline(state: RunnerState): void {
  state.runner.online = true;
  if (state.spec.scope === undefined) commandStarted(state);
}

/**
 * Checks the CI server until the runner is online there, the deadline has passed or another source
 * reports the runner's state.
 */
async function awaitRegistration(state: RunnerState): Promise<AttemptFailure | undefined> {
  const { spec, runner } = state;
  const withinMs = spec.timeouts.registrationMs;
  state.enterPhase('Registering');
  state.setWaitReason('runner to come online', Date.now() + withinMs);
  const { scope } = state;
  const calls = ciActivities(spec.credential, scope, 'provision', {
    summary: 'Wait until the runner is online',
    withinMs,
  });
  const called = await callUnless(
    () => runner.ended !== undefined || state.cancel !== undefined || state.hadJob,
    async () =>
      await calls.awaitRunnerOnline({
        scope,
        credential: spec.credential,
        runner: state.registration,
        intervalMs: spec.intervals.onlineCheckMs,
        credentialsRetryMs: spec.intervals.credentialsRetryMs,
      }),
  );
  if (called.kind === 'done') {
    runner.online = true;
    runner.id = called.value.runnerId;
  } else if (called.kind === 'failed' && !state.hadJob && runner.ended === undefined) {
    const cause = CAUSES[called.type] ?? 'never_registered';
    return {
      cause,
      message: `The runner did not come online within ${formatDuration(withinMs)}: ${called.message}`,
    };
  }
  return undefined;
}
