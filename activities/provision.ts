import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { defined } from '../core/defined.ts';
import { refusal } from './refusals.ts';
import { onCluster } from './onCluster.ts';
import { finalWhenOutOfTime } from './outOfTime.ts';
import { withHeartbeats } from './heartbeats.ts';
import { CiServerError, type ActivityPorts, type CiServer, type Registration } from './ports.ts';
import { answerSoon } from './heldBackAnswers.ts';
import { isMet } from '../core/domain/podConditions.ts';
import type { PodView } from '../core/domain/pod.ts';
import type { RegisterRequest } from '../core/domain/ciServer.ts';
import type { ProvisionInput, Provisioned, FindProvisionedInput } from '../core/calls/index.ts';

/**
 * Registration, Secret and pod, answered when the pod is online if that is soon. A retry finds what an earlier try made: the Secret's
 * registration is used again; a registration without a Secret can never be used (its JIT config is lost) and is removed first.
 */
export async function provision(ports: ActivityPorts, input: ProvisionInput): Promise<Provisioned> {
  const provisioned = await make(ports, input);
  const lookOut = isMet('online', provisioned.pod, Date.now()) ? undefined : ports.heldBackAnswers?.lookOut(provisioned.pod, 'online');
  return await answerSoon(ports.heldBackAnswers, lookOut, (pod = provisioned.pod) => ({ ...provisioned, pod }), input.dueWithinMs);
}

async function make({ compute, ciServers }: ActivityPorts, input: ProvisionInput): Promise<Provisioned> {
  const { identity, namespace } = input.pod;
  try {
    return await withHeartbeats(`provisioning ${compute.podName(identity)}`, async () => {
      if (input.ciServer === undefined) return { pod: await compute.createPod(input.pod, undefined) };
      const { credential, registration: request } = input.ciServer;
      const ciServer = ciServers.get(credential);
      const earlier = activityInfo().attempt > 1 ? await compute.readRegistrationSecret(identity, namespace) : undefined;
      const registration = earlier ?? (await registerAndStore());
      const pod = await compute.createPod(input.pod, registration);
      return withoutSecrets(registration, pod);

      async function registerAndStore(): Promise<Registration> {
        const fresh = await register(ciServer, { ...request, name: input.runnerName });
        const stored = await compute.storeRegistrationSecret(identity, fresh, namespace);
        if (stored.runnerId !== fresh.runnerId && fresh.runnerId !== undefined) await ciServer.removeRegistration(request.scope, fresh.runnerId);
        return stored;
      }
    });
  } catch (error) {
    throw finalWhenOutOfTime(refusal(error, input, true));
  }
}

function withoutSecrets({ runnerId }: Registration, pod: PodView): Provisioned {
  return { pod, ...defined({ runnerId }) };
}

/** The pod and the registration that a provisioning made whose answer was lost. */
export async function findProvisioned({ compute }: ActivityPorts, { identity, namespace, registered }: FindProvisionedInput): Promise<Provisioned | null> {
  const name = compute.podName(identity);
  return await onCluster(`looking for ${name}`, async () => {
    const pod = await compute.observe({ name, ...defined({ namespace }) });
    if (!registered && pod !== undefined) return { pod };
    const registration = pod === undefined ? undefined : await compute.readRegistrationSecret(identity, namespace);
    return pod === undefined || registration === undefined ? null : withoutSecrets(registration, pod);
  });
}

/**
 * The name carries a hash of this execution, so a 409 means our own earlier try died between registering and storing the
 * registration. That one was never used by anybody: it is removed, and the same name registered again. (With another name
 * each crash could leave one more registration that nobody knows of.)
 */
async function register(ciServer: CiServer, request: RegisterRequest): Promise<Registration> {
  const signal = cancellationSignal();
  try {
    return await ciServer.register(request, signal);
  } catch (error) {
    if (!(error instanceof CiServerError) || error.kind !== 'name_taken') throw error;
    const lost = await ciServer.find(request.scope, { name: request.name }, signal);
    if (lost !== undefined) {
      if (lost.online || lost.busy) throw error;
      await ciServer.removeRegistration(request.scope, lost.id, signal);
    }
    return await ciServer.register(request, signal);
  }
}
