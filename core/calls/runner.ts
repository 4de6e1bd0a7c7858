/** What the workflows `runner` and `deregistration` may ask of the world. */
import type { Scope, RegisterRequest } from '../domain/ciServer.ts';
import type { PodRef, PodRequest, PodView, RunnerIdentity, StopReason, VolumeClaimRequest } from '../domain/pod.ts';
import type { PodCondition } from '../domain/podConditions.ts';
import type { DeregistrationSpec } from '../input/deregistration.ts';
import type { RunnerSpec } from '../input/runner.ts';

/** The activities of Holdfast. All are idempotent: killing a worker between a side effect and its completion changes nothing in the end. */
export interface RunnerActivities {
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

export interface AdmitRunnerInput {
  readonly input: unknown;
  readonly workflowId: string;
  readonly firstRunId: string;
}

export interface ProvisionInput {
  /** At the CI server. */
  readonly runnerName: string;
  /** Absent: no CI server has to know it. */
  readonly ciServer?: { readonly credential: string; readonly registration: Omit<RegisterRequest, 'name'> };
  readonly pod: PodRequest;
  readonly credentialsRetryMs: number;
  /** How long the answer may wait for the runner to be online; shorter than the heartbeat timeout, which counts on meanwhile. @default not at all */
  readonly onlineWithinMs?: number;
}

/** Free of secrets: those stay in the runner's Secret. */
export interface Provisioned {
  readonly runnerId?: number;
  readonly pod: PodView;
}

export interface FindProvisionedInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  /** It has a registration at a CI server. */
  readonly registered: boolean;
}

export interface PodInput {
  readonly workflowId: string;
  readonly pod: PodRef;
}

export interface AwaitPodInput extends PodInput {
  readonly until: PodCondition;
}

export interface LookUpInput {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: { readonly id?: number; readonly name: string };
  /** First delay between two looks; doubles up to 30 s. */
  readonly intervalMs: number;
  readonly credentialsRetryMs: number;
}

/** A runner seen online at the CI server. */
export interface Sighting {
  readonly runnerId: number;
  readonly busy: boolean;
}

export interface ReleaseInput {
  readonly scope: Scope;
  readonly credential: string;
  /** Found by its name where its id is not known. */
  readonly runner: { readonly id?: number; readonly name: string };
  /** `retry`: fail and be retried while the runner is busy (a static runner's drain); `return`: answer `busy` at once. */
  readonly onBusy: 'retry' | 'return';
  /** Delay before the next try of a busy one; the retry policy's own backoff when absent. */
  readonly busyRetryMs?: number;
  readonly credentialsRetryMs: number;
  /** Given when the runner has ended: its Secret and pod are deleted in the same activity, whatever the answer. */
  readonly tearDown?: TearDownInput;
}

export interface Released {
  readonly answer: 'removed' | 'absent' | 'busy';
  /** This is not the first try: an absent runner may have been removed by an earlier one whose answer was lost, as with its worker. */
  readonly retried?: true;
  /** Tries for this runner, this one included. A lower bound: a worker that died took its count with it. */
  readonly attempts: number;
  readonly runnerId?: number;
  readonly pod?: 'gone' | 'terminating';
}

export interface StopPodInput extends PodInput {
  /** The pod's own grace when absent; 0 kills at once. */
  readonly gracePeriodSeconds?: number;
  readonly reason: string;
  /** Told to the supervisor before the pod is stopped. */
  readonly announce?: StopReason;
  /** The log's tail is kept first. */
  readonly keepLog?: boolean;
}

export interface TearDownInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  /** Absent when provisioning never answered: the pod is then looked for by its deterministic name. */
  readonly pod?: PodRef;
  readonly gracePeriodSeconds?: number;
  /** The log's tail is kept first. */
  readonly keepLog?: boolean;
  /** How long the answer may wait for the pod to be gone; shorter than the heartbeat timeout, which counts on meanwhile. @default not at all */
  readonly goneWithinMs?: number;
}

export interface DeleteClaimsInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  readonly claims: readonly VolumeClaimRequest[];
}
