/**
 * Repairs of findings. Each reads the live state and assesses it again, because an earlier
 * observation or a list is not sufficient for a deletion.
 */
import {
  ORPHANED_POD_MESSAGE,
  STUCK_RUNNER_MESSAGE,
  cancelSignal,
  replaceIdleSignal,
  podStateSignal,
  type SweepSkip,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import type { Finding } from '../../core/sweep/decideSweep.ts';
import type { Assessment, RunnerWorkflow } from '../../core/sweep/facts.ts';
import { assessJobObject } from '../../core/sweep/assessJobObject.ts';
import { isOverdue, assessPod } from '../../core/sweep/assessPod.ts';
import { assessResource } from '../../core/sweep/assessResource.ts';
import { assessRunner } from '../../core/sweep/assessRunner.ts';
import { objectMark } from '../../core/sweep/objectMark.ts';
import type { OwnedObject, OwnedRegistration } from '../../core/sweep/ownedObject.ts';
import { stuckRunnerStep } from '../../core/sweep/stuckRunnerStep.ts';
import type { OwnedObjects } from '../shared/ownedObjects.ts';
import { ownershipError } from '../shared/registrationOwnership.ts';
import { removeUnlessBusy } from '../shared/removeUnlessBusy.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { inspectJobObject } from './jobObjects.ts';
import { recheckRunner } from './runningRunners.ts';
import { isOfSameRunner } from './inventory.ts';
import { handOff } from './handOff.ts';
import { TaskQueuePollers } from './polledQueues.ts';
import type { SweepSources } from './sweepSources.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Result of a repair. */
export type Repaired =
  | { readonly kind: 'repaired'; readonly note?: string }
  /** The repair was skipped because the live state no longer permits it. */
  | { readonly kind: 'skipped'; readonly why: SweepSkip };

const CHANGED: Repaired = { kind: 'skipped', why: 'changed' };

/** Dependencies of the repairs. */
export interface RepairTools {
  readonly sources: SweepSources;
  readonly spec: SweepSpec;
  readonly owned: OwnedObjects;
  readonly workflows: RunnerWorkflows;
}

/** Stops an orphaned pod. Its registration is removed first, so that it gets no further job. */
export async function repairPod(
  { sources, spec, owned, workflows }: RepairTools,
  { object, as, reason }: Extract<Finding, { subject: 'object' }>,
): Promise<Repaired> {
  const pod = await owned.get(object);
  if (pod?.identity === undefined || pod.mark === undefined) return CHANGED;
  const assessment = assessPod(pod, await workflows.owner(pod.identity), owned.now(), spec);
  if (!isStill(assessment, as)) return resultNote(assessment);
  const { logger, compute } = sources;
  const wasRunning = pod.pod?.ended === false;
  const at = await registrationOf(pod, workflows);
  const removal = at === undefined ? undefined : await removeFirst(sources, at);
  const overdue = isOverdue(pod, owned.now());
  if (wasRunning) await owned.mark(pod, objectMark(as, reason, owned.now()));
  logger.warn(
    {
      pod: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      workflowId: pod.identity.workflowId,
      registration: removal,
    },
    wasRunning ? ORPHANED_POD_MESSAGE : `deleting the pod: ${reason}`,
  );
  // Hand off before the pod is deleted: if this process ends in between, the removal continues.
  const isLeft = removal !== undefined && removal !== 'removed' && removal !== 'absent';
  const note =
    at !== undefined && (wasRunning || isLeft)
      ? `its registration ${isLeft ? `could not be removed yet (${removal})` : 'was removed'}; ${await handOff(sources.client, sources.taskQueue, at, at, wasRunning ? ORPHANED_POD_MESSAGE : reason)}`
      : undefined;
  const isSignaled = wasRunning && pod.pod?.online !== undefined;
  await owned.delete(pod, {
    ...(overdue ? { gracePeriodSeconds: 0 } : {}),
    ...(isSignaled && !overdue ? { stopReason: 'cancelled' as const } : {}),
  });
  await compute.deleteRegistrationSecret(pod.identity, pod.namespace);
  return { kind: 'repaired', ...omitUndefined({ note }) };
}

/**
 * Returns where the pod's runner is registered, as recorded on the pod, otherwise as in the input
 * of its workflow.
 */
async function registrationOf(
  { registration, identity }: OwnedObject,
  workflows: RunnerWorkflows,
): Promise<
  (OwnedRegistration & Required<Pick<OwnedRegistration, 'scope' | 'credential'>>) | undefined
> {
  if (registration === undefined || identity === undefined) return undefined;
  const { name, id, scope, credential } = registration;
  if (scope !== undefined && credential !== undefined)
    return { name, scope, credential, ...omitUndefined({ id }) };
  const description = await workflows.describe(identity.workflowId);
  const at = description && (await workflows.input(description))?.at;
  return at && { name, ...at, ...omitUndefined({ id }) };
}

/**
 * Removes the registration, so that the runner gets no further job. A busy reply or an outage does
 * not keep a runner whose workflow has ended.
 * @returns the result, or the error message
 */
async function removeFirst(
  { ciServers, compute, signal }: SweepSources,
  {
    name,
    id,
    scope,
    credential,
  }: OwnedRegistration & Required<Pick<OwnedRegistration, 'scope' | 'credential'>>,
): Promise<string> {
  try {
    const server = ciServers.get(credential);
    const found = await server.findRunner(scope, { name, ...omitUndefined({ id }) }, signal);
    if (found === undefined) return id === undefined ? 'not listed' : 'absent';
    // A user who may create pods can write any registration into their annotations.
    const fault = ownershipError(found, name, await compute.location());
    return fault ?? (await removeUnlessBusy(server, scope, { id: found.id, name }, signal));
  } catch (error) {
    signal?.throwIfAborted();
    return errorMessage(error);
  }
}

/** Deletes an object of a job after reading its live state. */
export async function repairJobObject(
  { spec, owned, workflows, sources }: RepairTools,
  { object, as, reason }: Extract<Finding, { subject: 'object' }>,
): Promise<Repaired> {
  const now = await owned.get(object);
  if (now?.mark === undefined) return CHANGED;
  const { object: proven, used } = await inspectJobObject(now, sources.compute, workflows);
  const assessment = assessJobObject(proven, used, owned.now(), spec);
  if (!isStill(assessment, as)) return resultNote(assessment);
  sources.logger.warn(
    {
      kind: now.kind,
      name: now.name,
      namespace: now.namespace,
      uid: now.uid,
      workflowId: proven.identity?.workflowId,
    },
    `deleting it: ${reason}`,
  );
  await owned.delete(now);
  return { kind: 'repaired' };
}

/** Deletes a Secret or claim after reading its live state. */
export async function repairResource(
  { spec, owned, workflows, sources }: RepairTools,
  { object, as, reason }: Extract<Finding, { subject: 'object' }>,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired> {
  const now = await owned.get(object);
  if (now?.identity === undefined || now.mark === undefined) return CHANGED;
  const used = (await pods()).some((pod) => isOfSameRunner(now, pod));
  const assessment = assessResource(
    now,
    await workflows.owner(now.identity),
    used,
    owned.now(),
    spec,
  );
  if (!isStill(assessment, as)) return resultNote(assessment);
  sources.logger.warn(
    {
      kind: now.kind,
      name: now.name,
      namespace: now.namespace,
      uid: now.uid,
      workflowId: now.identity.workflowId,
    },
    `deleting it: ${reason}`,
  );
  await owned.delete(now);
  return { kind: 'repaired' };
}

/** Removes a registration if the CI server still lists its runner as offline and idle. */
export async function repairRegistration(
  { sources, workflows }: RepairTools,
  { registration, reason }: Extract<Finding, { subject: 'registration' }>,
): Promise<Repaired> {
  const { scope, credential, id, name } = registration;
  const server = sources.ciServers.get(credential);
  const now = await server.findRunner(scope, { id, name }, sources.signal);
  if (now === undefined || now.name !== name || (await workflows.runs(name))) return CHANGED;
  if (now.online || now.busy) return { kind: 'skipped', why: 'online_or_busy' };
  sources.logger.warn(
    { runner: name, id, scope: `${scope.kind} ${scope.name}` },
    `removing the registration: ${reason}`,
  );
  try {
    return {
      kind: 'repaired',
      note: await removeUnlessBusy(server, scope, { id, name }, sources.signal),
    };
  } catch (error) {
    if (error instanceof CiServerError && error.kind === 'busy')
      return { kind: 'skipped', why: 'online_or_busy' };
    throw error;
  }
}

/** Signals a runner workflow to check its pod. The signal names no pod, so it changes no state. */
export async function wakeRunner(
  { sources }: RepairTools,
  { workflowId, runId }: RunnerWorkflow,
): Promise<void> {
  await sources.client.workflow
    .getHandle(workflowId, runId)
    .signal(podStateSignal, { uid: '', state: 'idle' });
}

/**
 * Stops a container step that outlived its job, within its grace period. The result of the step
 * contains the reason.
 */
export async function stopStep(
  { sources, spec, owned, workflows }: RepairTools,
  { runner, as, reason }: Extract<Finding, { subject: 'runner' }>,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired> {
  const { workflowId, runId } = runner;
  const { job: before, ...rest } = runner;
  const job = before && (await workflows.job(before.workflowId));
  const [now] = await recheckRunner(
    {
      ...rest,
      ...omitUndefined({ job }),
      pods: (await pods()).filter(({ identity }) => identity?.workflowId === workflowId),
    },
    workflows,
  );
  if (now === undefined || now.runId !== runId) return CHANGED;
  const assessment = assessRunner(now, owned.now(), spec);
  if (!isStill(assessment, as)) return resultNote(assessment);
  sources.logger.warn({ workflowId, runId, job: job?.workflowId }, reason);
  await sources.client.workflow
    .getHandle(workflowId, runId)
    .signal(cancelSignal, { mode: 'stop', reason });
  return { kind: 'repaired' };
}

/**
 * Makes a runner workflow replace its unresponsive runner. The pod and a live request to the CI
 * server must still confirm the finding.
 */
export async function replaceUnresponsive(
  { sources, spec, owned }: RepairTools,
  { runner, as, reason }: Extract<Finding, { subject: 'runner' }>,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired> {
  const { workflowId, runId, registration } = runner;
  if (registration === undefined) return CHANGED;
  const { scope, credential, id, name } = registration;
  const current = await sources.ciServers
    .get(credential)
    .findRunner(scope, { id, name }, sources.signal);
  if (current?.name !== name) return CHANGED;
  const { online, busy } = current;
  const now = {
    ...runner,
    pods: (await pods()).filter(({ identity }) => identity?.workflowId === workflowId),
    registration: { ...registration, online, busy },
  };
  if (now.pods.some((pod) => pod.registration?.name !== name)) return CHANGED;
  const assessment = assessRunner(now, owned.now(), spec);
  if (!isStill(assessment, as)) return resultNote(assessment);
  sources.logger.warn(
    { workflowId, runId, runner: name, scope: `${scope.kind} ${scope.name}` },
    `replacing the runner: ${reason}`,
  );
  await sources.client.workflow
    .getHandle(workflowId, runId)
    .signal(replaceIdleSignal, { runnerName: name, reason });
  return { kind: 'repaired' };
}

/**
 * Terminates a runner workflow whose pod is lost and whose task queue no worker polls. The removal
 * of its registration is handed off.
 */
export async function terminateStuckRunner(
  { sources, spec, owned, workflows }: RepairTools,
  { runner, mark }: Extract<Finding, { subject: 'runner' }>,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired> {
  const { workflowId, runId, taskQueue, runnerName } = runner;
  const hasPoller = await new TaskQueuePollers(sources.client, () => owned.now()).isPolled(
    taskQueue,
  );
  const [now] = await recheckRunner(
    {
      ...runner,
      hasPoller,
      pods: (await pods()).filter(({ identity }) => identity?.workflowId === workflowId),
    },
    workflows,
  );
  if (
    now === undefined ||
    now.runId !== runId ||
    assessRunner(now, owned.now(), spec).kind !== 'finding'
  )
    return CHANGED;
  if (stuckRunnerStep(now, mark, owned.now(), spec).kind !== 'terminate') return CHANGED;
  const at = (await workflows.input({ workflowId, runId }))?.at;
  sources.logger.warn({ workflowId, runId, taskQueue, runner: runnerName }, STUCK_RUNNER_MESSAGE);
  await sources.client.workflow.getHandle(workflowId, runId).terminate(STUCK_RUNNER_MESSAGE);
  const removal =
    at === undefined || runnerName === ''
      ? undefined
      : await handOff(sources.client, taskQueue, { name: runnerName }, at, STUCK_RUNNER_MESSAGE);
  return {
    kind: 'repaired',
    ...omitUndefined({
      note: removal && `the removal of its registration was handed off to ${removal}`,
    }),
  };
}

function isStill(assessment: Assessment, as: Finding['as']): boolean {
  return assessment.kind === 'finding' && assessment.as === as;
}

function resultNote(assessment: Assessment): Repaired {
  return assessment.kind === 'skip' ? { kind: 'skipped', why: assessment.why } : CHANGED;
}
