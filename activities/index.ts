/** Everything workflows may ask of the world, built from the ports. */
import type { DeregistrationSpec } from '../workflows/deregistrationInput.ts';
import type { RunnerSpec } from '../workflows/input.ts';
import { admitDeregistration, admitRunner, type AdmitRunnerInput } from './admit.ts';
import { awaitNodeReleased, awaitPod, deleteClaims, observePod, stopPod, tearDown, type AwaitPodInput, type DeleteClaimsInput, type PodInput, type StopPodInput, type TearDownInput } from './pods.ts';
import type { ActivityPorts, PodView } from './ports.ts';
import { lookUpRunner, type LookUpInput, type Sighting } from './lookUp.ts';
import { findProvisioned, provision, type FindProvisionedInput, type ProvisionInput, type Provisioned } from './provision.ts';
import { release, type ReleaseInput, type Released } from './release.ts';
import { createSetActivities, type SetActivities, type SetPorts } from './sets/index.ts';

/** The activities of Holdfast. All are idempotent: killing a worker between a side effect and its completion changes nothing in the end. */
export interface HoldfastActivities extends SetActivities {
  /** Checks and completes the input of a runner; asks nobody. A local activity. */
  admitRunner(input: AdmitRunnerInput): Promise<RunnerSpec>;
  /** Checks and completes the input of a deregistration; asks nobody. A local activity. */
  admitDeregistration(input: { input: unknown }): Promise<DeregistrationSpec>;
  /** Registers the runner, stores the registration in its Secret and creates its pod, in one. */
  provision(input: ProvisionInput): Promise<Provisioned>;
  /** What an interrupted {@link provision} has left, if there is a pod. */
  findProvisioned(input: FindProvisionedInput): Promise<Provisioned | null>;
  /** Waits until the pod is online, has ended or is gone; holds no slot meanwhile. */
  awaitPod(input: AwaitPodInput): Promise<PodView>;
  /** The pod as it is now. */
  observePod(input: PodInput): Promise<PodView>;
  /** Looks at the CI server until the runner is online there. */
  lookUpRunner(input: LookUpInput): Promise<Sighting>;
  /** Removes the registration and, where the runner has ended, its Secret and pod with it. */
  release(input: ReleaseInput): Promise<Released>;
  /** Asks for the pod's graceful stop. */
  stopPod(input: StopPodInput): Promise<'gone' | 'terminating'>;
  /** Deletes the pod (this UID) and the Secret. */
  tearDown(input: TearDownInput): Promise<'gone' | 'terminating'>;
  /** Deletes the claims that are the life's own. */
  deleteClaims(input: DeleteClaimsInput): Promise<void>;
  /** Waits until nothing can write any more from a node that was lost. */
  awaitNodeReleased(input: { node: string }): Promise<void>;
}

/** Builds the activities. Pass the result to a Temporal Worker, or let `HoldfastPlugin` do it. */
export function createActivities(ports: ActivityPorts & SetPorts): HoldfastActivities {
  return {
    ...createSetActivities(ports),
    admitRunner: async (input) => admitRunner(ports, input),
    admitDeregistration: async (input) => admitDeregistration(ports, input),
    provision: (input) => provision(ports, input),
    findProvisioned: (input) => findProvisioned(ports, input),
    awaitPod: (input) => awaitPod(ports, input),
    observePod: (input) => observePod(ports, input),
    lookUpRunner: (input) => lookUpRunner(ports, input),
    release: (input) => release(ports, input),
    stopPod: (input) => stopPod(ports, input),
    tearDown: (input) => tearDown(ports, input),
    deleteClaims: (input) => deleteClaims(ports, input),
    awaitNodeReleased: (input) => awaitNodeReleased(ports, input),
  };
}
