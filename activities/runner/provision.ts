import { activityInfo, cancellationSignal, getClient } from '@temporalio/activity';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { locationLabel, runnerHash } from '../compute/naming.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import { jobOfStep } from './storagePath.ts';
import { markOwned, ownershipError } from '../shared/registrationOwnership.ts';
import { isWorkflowCancelled } from '../shared/cancellationReason.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import { forWorkflow } from './pods.ts';
import { rejection } from '../shared/rejections.ts';
import { removeUnlessBusy } from '../shared/removeUnlessBusy.ts';
import { temporalNamespaceId } from '../shared/temporalNamespace.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { ComputeError } from '../ports/computeError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { Registration } from '../ports/ciServer.ts';
import { completeOrDefer } from '../watcher/deferredCompletions.ts';
import { MAX_LABELS } from '../../core/domain/labels.ts';
import { conditionMet } from '../../core/domain/podConditions.ts';
import { formatLocation, type Location } from '../../core/domain/location.ts';
import type { PodRequest, PodView } from '../../core/domain/pod.ts';
import {
  FAILURE_TYPES,
  type FindProvisionedInput,
  type FoundProvision,
  type WithLocation,
  type ProvisionInput,
  type ProvisionResult,
} from '../../core/activities/index.ts';

/**
 * Maximum time after the start of an attempt at which it may begin to create something (ms). Later,
 * another worker may have the provisioning, or the workflow may have closed.
 * `intervals.lateCreationWindow` relies on this limit.
 */
const MAX_CREATION_DELAY_MS = 60_000;

/**
 * Creates the registration, the Secret and the pod of a runner. Completes when the pod is online if
 * that happens within `completeWithinMs`.
 *
 * A retry reuses what an earlier attempt created. It uses the registration in the Secret again. A
 * registration without a Secret can never be used, because its JIT config is lost, and is removed
 * first.
 * @throws ApplicationFailure `ProvisioningSuperseded`, which means that this attempt must not
 * create anything any more.
 */
export async function provision(
  ports: ActivityPorts,
  input: WithLocation<ProvisionInput>,
): Promise<ProvisionResult> {
  const provisioned = await create(ports, await withTemporalNamespace(ports, input));
  const lookOut = conditionMet('online', provisioned.pod, Date.now())
    ? undefined
    : ports.deferredCompletions?.addWaiter(provisioned.pod, 'online');
  return await completeOrDefer(
    ports.deferredCompletions,
    lookOut,
    (pod) => ({ ...provisioned, pod: forWorkflow(pod ?? provisioned.pod) }),
    Math.min(
      input.completeWithinMs ?? Number.POSITIVE_INFINITY,
      ports.deferredCompletions?.limits.provisioningMs ?? 0,
    ),
  );
}

/** Adds the ID of the Temporal namespace of the workflow to the identity of the created objects. */
async function withTemporalNamespace(
  ports: ActivityPorts,
  input: WithLocation<ProvisionInput>,
): Promise<WithLocation<ProvisionInput>> {
  const id = await (ports.temporalNamespaceId?.() ?? temporalNamespaceId(getClient()));
  const identity = { ...input.pod.identity, temporalNamespaceId: id };
  return { ...input, pod: { ...input.pod, identity } };
}

async function create(
  ports: ActivityPorts,
  given: WithLocation<ProvisionInput>,
): Promise<ProvisionResult> {
  const { compute } = ports;
  const { identity } = given.pod;
  try {
    return await withHeartbeats(`provisioning ${compute.podName(identity)}`, async () => {
      const mayCreate = creationFence();
      const input = { ...given, pod: await withJob(ports, given.pod) };
      const { ciServer } = input;
      if (ciServer === undefined) {
        mayCreate();
        return { pod: await compute.createPod(input.pod, undefined) };
      }
      const earlier =
        activityInfo().attempt > 1
          ? await findUnusedRegistration(ports, { ...input, ciServer })
          : undefined;
      const registration =
        earlier ?? (await registerAndStore(ports, { ...input, ciServer }, mayCreate));
      mayCreate();
      const pod = await compute.createPod(input.pod, registration);
      return { pod, ...runnerIdOf(registration) };
    });
  } catch (error) {
    throw nonRetryableAfterDeadline(rejection(error, given, { isFinal: true }));
  }
}

/**
 * Sets the job whose claim the pod of a step mounts. The input may name another job, so only what
 * Temporal reports counts.
 */
async function withJob({ compute }: ActivityPorts, pod: PodRequest): Promise<PodRequest> {
  if (pod.storage === undefined) return pod;
  const { job: _claimed, ...storage } = pod.storage;
  if (compute.stepStorage === undefined) return { ...pod, storage };
  const owner = await jobOfStep(storage);
  if (compute.stepStorage === 'store') return { ...pod, storage };
  const job = { ...pod.identity, ...owner, attempt: 0 };
  return { ...pod, storage: { ...storage, job } };
}

/**
 * Returns a function to call before each creation.
 * @returns a function that throws if this attempt must not create anything any more: it was
 * cancelled, its worker shuts down, or it is older than {@link MAX_CREATION_DELAY_MS}
 */
function creationFence(): () => void {
  const begunAt = performance.now();
  const calledOff = cancellationSignal();
  return () => {
    if (isWorkflowCancelled(calledOff))
      throw applicationFailure(
        'The provisioning was cancelled; it creates nothing more',
        FAILURE_TYPES.superseded,
        { final: true, expected: true },
      );
    // Another attempt continues the provisioning.
    calledOff.throwIfAborted();
    if (performance.now() - begunAt > MAX_CREATION_DELAY_MS)
      throw applicationFailure(
        `This try took longer than ${MAX_CREATION_DELAY_MS / 1_000} s; it creates nothing more`,
        FAILURE_TYPES.superseded,
      );
  };
}

/**
 * Returns a signal that aborts when another attempt is to continue, because the worker shuts down or
 * a user pauses or resets the activity, but not when the workflow cancels the activity.
 */
function otherAttemptSignal(): AbortSignal {
  const cancelled = cancellationSignal();
  const continued = new AbortController();
  const judge = (): void =>
    isWorkflowCancelled(cancelled) ? undefined : continued.abort(cancelled.reason);
  if (cancelled.aborted) judge();
  else cancelled.addEventListener('abort', judge, { once: true });
  return continued.signal;
}

type CiProvisionInput = WithLocation<ProvisionInput> & {
  readonly ciServer: NonNullable<ProvisionInput['ciServer']>;
};

/**
 * Registers the runner and stores the registration in a Secret. A registration that no pod will
 * ever use is removed here by its ID, because a list read later may not contain its name yet.
 */
async function registerAndStore(
  ports: ActivityPorts,
  input: CiProvisionInput,
  mayCreate: () => void,
): Promise<Registration> {
  const { compute, ciServers } = ports;
  const { credential, registration: request } = input.ciServer;
  const { identity, namespace } = input.pod;
  const registration: Registration = {
    ...(await register(ports, input)),
    at: { scope: request.scope, credential },
  };
  if (registration.runnerId !== undefined)
    markOwned({ credential, scope: request.scope, name: input.runnerName }, registration.runnerId);
  const drop = async (): Promise<void> => {
    if (registration.runnerId !== undefined)
      await ciServers.get(credential).removeRegistration(request.scope, registration.runnerId);
  };
  let stored: Registration;
  try {
    mayCreate();
    stored = await compute.storeRegistrationSecret(identity, registration, namespace);
  } catch (error) {
    // Without an answer the Secret may exist, and the next attempt uses it.
    if (!(error instanceof ComputeError && error.kind === 'unavailable')) await drop();
    throw error;
  }
  if (stored.runnerId !== registration.runnerId) await drop();
  return stored;
}

/**
 * Returns the registration that an earlier attempt stored, if a pod can still be created with it. A
 * single-use registration whose pod is gone may already have run its job. If its runner is online
 * or busy, the call waits for it by failing. If the CI server no longer lists it, the Secret is
 * deleted.
 * @throws CiServerError `unavailable` if the runner is online or busy although its pod is gone
 */
async function findUnusedRegistration(
  { compute, ciServers }: Pick<ActivityPorts, 'compute' | 'ciServers'>,
  {
    runnerName,
    ciServer,
    pod: { identity, namespace },
  }: Pick<CiProvisionInput, 'runnerName' | 'ciServer' | 'pod'>,
): Promise<Registration | undefined> {
  const stored = await compute.readRegistrationSecret(identity, namespace);
  if (stored?.runnerId === undefined) return stored;
  if (
    (await compute.getPod({
      name: compute.podName(identity),
      workflowId: identity.workflowId,
      ...omitUndefined({ namespace }),
    })) !== undefined
  )
    return stored;
  const runner = await ciServers
    .get(ciServer.credential)
    .findRunner(ciServer.registration.scope, { id: stored.runnerId, name: runnerName });
  if (runner?.online === true || runner?.busy === true) {
    throw new CiServerError(
      'unavailable',
      `${runnerName} is ${runner.busy ? 'busy' : 'online'}, and its pod is gone; its registration cannot be used until the CI server shows it offline`,
    );
  }
  if (runner !== undefined) return stored;
  await compute.deleteRegistrationSecret(identity, namespace);
  return undefined;
}

/**
 * Registers the runner at the CI server.
 *
 * If the name is taken (409) and this runner has a Secret, the registration belongs to this runner:
 * another attempt created it, or the workflow did before it was reset. Without a Secret, only a
 * retry may assume that an earlier attempt created the registration and died before it could store
 * it. The name contains a hash of this execution, and the registration can never have been used.
 * Every other registration is left alone, and the runner needs another name.
 *
 * A cancellation does not abort the request, because a registration whose response is lost would be
 * left behind. A worker shutdown does: the next attempt finds the registration.
 * @throws CiServerError `name_taken` if the name belongs to another registration
 */
async function register(
  { compute, ciServers }: ActivityPorts,
  { runnerName, ciServer, pod, location }: CiProvisionInput,
): Promise<Registration> {
  const server = ciServers.get(ciServer.credential);
  const request = {
    ...ciServer.registration,
    labels: withLocationLabel(ciServer.registration.labels, location),
    name: runnerName,
  };
  const handedBack = otherAttemptSignal();
  try {
    return await server.register(request, handedBack);
  } catch (error) {
    if (!(error instanceof CiServerError) || error.kind !== 'name_taken') throw error;
    const stored = await findUnusedRegistration(
      { compute, ciServers },
      { runnerName, ciServer, pod },
    );
    if (stored !== undefined) return stored;
    if (activityInfo().attempt === 1) throw error;
    const lost = await server.findRunner(request.scope, { name: runnerName });
    // A server that does not list runners of scale sets knows them there. The name contains a hash
    // of this execution.
    if (
      lost === undefined &&
      request.scaleSet !== undefined &&
      parseRunnerNameHash(runnerName) === runnerHash(pod.identity)
    ) {
      const id = await server.scaleSets?.runnerId(request.scope, runnerName);
      if (id !== undefined) {
        await server.scaleSets?.removeRunner(request.scope, id);
        return await server.register(request, handedBack);
      }
    }
    if (lost === undefined)
      throw new CiServerError('unavailable', `${error.message}; it is not listed yet`);
    if (
      lost.online ||
      lost.busy ||
      parseRunnerNameHash(runnerName) !== runnerHash(pod.identity) ||
      ownershipError(lost, runnerName, await compute.location()) !== undefined
    )
      throw error;
    await removeUnlessBusy(server, request.scope, lost);
    return await server.register(request, handedBack);
  }
}

/**
 * Adds the label by which the sweep recognizes registrations of this location. A runner that
 * already has the maximum number of labels is recognized by its name only.
 */
function withLocationLabel(labels: readonly string[], place: Location): readonly string[] {
  return labels.length < MAX_LABELS ? [...labels, locationLabel(formatLocation(place))] : labels;
}

/** Returns the pod and the registration ID that a provisioning created whose result was lost. */
export async function findProvisioned(
  { compute }: ActivityPorts,
  { identity, namespace, hasRegistration }: FindProvisionedInput,
): Promise<FoundProvision> {
  const name = compute.podName(identity);
  return await withClusterErrors(`looking for ${name}`, async () => {
    const pod: PodView | undefined = await compute.getPod({
      name,
      workflowId: identity.workflowId,
      ...omitUndefined({ namespace }),
    });
    const registration = hasRegistration
      ? await compute.readRegistrationSecret(identity, namespace)
      : undefined;
    return {
      ...omitUndefined({ pod: pod && forWorkflow(pod) }),
      ...(registration && runnerIdOf(registration)),
    };
  });
}

function runnerIdOf({ runnerId }: Registration): { readonly runnerId?: string } {
  return omitUndefined({ runnerId });
}
