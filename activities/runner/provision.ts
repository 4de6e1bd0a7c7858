import {
  CancelledFailure,
  activityInfo,
  cancellationSignal,
  getClient,
} from '@temporalio/activity';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { locationLabel, runnerHash } from '../compute/naming.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import { assertOwnStoragePath } from './storagePath.ts';
import { markOwned, ownershipError } from './registrationOwnership.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import { withoutWorkflowId } from './pods.ts';
import { refusal } from '../shared/rejections.ts';
import { removeUnlessBusy } from '../shared/removeUnlessBusy.ts';
import { temporalNamespaceId } from '../shared/temporalNamespace.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { CiServerError, ComputeError, type ActivityPorts, type Registration } from '../ports.ts';
import { completeOrDefer } from '../watcher/deferredCompletions.ts';
import { MAX_LABELS } from '../../core/domain/labels.ts';
import { conditionMet } from '../../core/domain/podConditions.ts';
import { formatLocation, type Location } from '../../core/domain/location.ts';
import type { PodView } from '../../core/domain/pod.ts';
import {
  FAILURE_TYPES,
  type FindProvisionedInput,
  type FoundProvision,
  type WithLocation,
  type ProvisionInput,
  type ProvisionResult,
} from '../../core/activities/index.ts';

/**
 * A try begins to create nothing later than this after it began itself, in ms: another worker may have the provisioning by then, or its life
 * may be over. `intervals.lateCreationWindow` counts on it.
 */
const MAX_CREATION_DELAY_MS = 60_000;

/**
 * Registration, Secret and pod, answered when the pod is online if that is soon. A retry finds what an earlier try made: the Secret's
 * registration is used again; a registration without a Secret can never be used (its JIT config is lost) and is removed first.
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
    (pod) => ({ ...provisioned, pod: withoutWorkflowId(pod ?? provisioned.pod) }),
    input.completeWithinMs,
  );
}

/** What is created says which Temporal knows its workflow. */
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
  input: WithLocation<ProvisionInput>,
): Promise<ProvisionResult> {
  const { compute } = ports;
  const { identity } = input.pod;
  try {
    return await withHeartbeats(`provisioning ${compute.podName(identity)}`, async () => {
      const mayCreate = creationFence();
      if (compute.hasArtifactStore === true && input.pod.storage !== undefined)
        await assertOwnStoragePath(input.pod.storage);
      const { ciServer } = input;
      if (ciServer === undefined) return { pod: await compute.createPod(input.pod, undefined) };
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
    throw nonRetryableAfterDeadline(refusal(error, input, true));
  }
}

/** Asked before each step: is this try still the one that provisions? @returns what throws when it is not */
function creationFence(): () => void {
  const begunAt = performance.now();
  const calledOff = cancellationSignal();
  return () => {
    if (isReleased(calledOff)) throw calledOff.reason;
    if (calledOff.aborted)
      throw applicationFailure(
        'The provisioning was called off; it creates nothing more',
        FAILURE_TYPES.superseded,
        { final: true, expected: true },
      );
    if (performance.now() - begunAt > MAX_CREATION_DELAY_MS)
      throw applicationFailure(
        `This try took longer than ${MAX_CREATION_DELAY_MS / 1_000} s; it creates nothing more`,
        FAILURE_TYPES.superseded,
      );
  };
}

/** The worker has to be gone: the next try is another worker's, and nothing is called off. */
function isReleased({ reason }: AbortSignal): boolean {
  return reason instanceof CancelledFailure && reason.message === 'WORKER_SHUTDOWN';
}

/** Aborted when the activity is handed back, and not when it is called off. */
function releaseRegistration(): AbortSignal {
  const cancelled = cancellationSignal();
  const handedBack = new AbortController();
  const judge = (): void =>
    isReleased(cancelled) ? handedBack.abort(cancelled.reason) : undefined;
  if (cancelled.aborted) judge();
  else cancelled.addEventListener('abort', judge, { once: true });
  return handedBack.signal;
}

type CiProvisionInput = WithLocation<ProvisionInput> & {
  readonly ciServer: NonNullable<ProvisionInput['ciServer']>;
};

/** A registration that no pod will ever use is removed here, by its id: who looks for it by its name may get a list that does not have it yet. */
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
    // Without an answer the Secret may be there, for the next try.
    if (!(error instanceof ComputeError && error.kind === 'unavailable')) await drop();
    throw error;
  }
  if (stored.runnerId !== registration.runnerId) await drop();
  return stored;
}

/**
 * The registration that an earlier try has stored, for as long as a pod may still be made with it. A single-use one that has been in a pod
 * which is gone may have had its job there: while its runner is at work it is waited for, and one that is gone is forgotten.
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
      `${runnerName} is ${runner.busy ? 'busy' : 'online'}, and its pod is gone: its registration is of no use until the CI server has noticed`,
    );
  }
  if (runner !== undefined) return stored;
  await compute.deleteRegistrationSecret(identity, namespace);
  return undefined;
}

/**
 * The CI server's registration. Where its name is taken (409): with a Secret of this very runner that registration is ours, made by another
 * try, or before the workflow was reset. Without one only a retry may take it for ours, lost by an earlier try that died before it could
 * store it: the name carries a hash of this execution, and nobody can ever have used it. Anything else is left alone: the runner needs
 * another name.
 *
 * Not aborted by a cancel: a registration whose answer nobody awaits would be left behind. One that is handed back is the next try's to find.
 * @throws CiServerError `name_taken` for another name
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
  const handedBack = releaseRegistration();
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

/** By that label the sweep knows a registration for this place's. Where a runner has as many labels as it may have, its name has to do. */
function withLocationLabel(labels: readonly string[], place: Location): readonly string[] {
  return labels.length < MAX_LABELS ? [...labels, locationLabel(formatLocation(place))] : labels;
}

/** What a provisioning made whose answer was lost. */
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
    return { ...omitUndefined({ pod }), ...(registration && runnerIdOf(registration)) };
  });
}

/** Free of secrets. */
function runnerIdOf({ runnerId }: Registration): { readonly runnerId?: string } {
  return omitUndefined({ runnerId });
}
