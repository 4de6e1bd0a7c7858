/** What the workflows `runner` and `deregistration` may ask of the world. */
import type { RegisterRequest, RemovalResult, Scope } from '../domain/ciServer.ts';
import type { VolumeClaim } from '../contract/index.ts';
import type {
  ClaimWriter,
  PodRef,
  PodRequest,
  PodSnapshot,
  RunnerIdentity,
  StopReason,
} from '../domain/pod.ts';
import type { Location } from '../domain/location.ts';
import type { PodCondition } from '../domain/podConditions.ts';
import type { SetNotification } from './runnerSet.ts';
import type { DeregistrationSpec } from '../input/deregistration.ts';
import type { RunnerSpec } from '../input/runner.ts';

/** A runner's spec, and where its life is lived: on whichever worker, for as long as it lasts. */
export interface AdmittedRunner extends RunnerSpec {
  readonly location: Location;
  /** Nothing keeps the CI server from removing a busy runner, which ends its job. @default it is refused, or prevented */
  readonly removalEndsJob?: true;
  /** Why the input of a run that continues another is not accepted any more. Then the rest is what a runner needs to drain, and no more. */
  readonly rejection?: string;
}

/** What is asked of the cluster is asked of the one in which the life is lived: a worker of another place does not answer. */
export type WithLocation<T> = T & { readonly location: Location };

/** All are idempotent: killing a worker between a side effect and its completion changes nothing in the end. */
export interface RunnerActivities {
  /** Checks and completes the input of a runner; asks nobody but, once, which cluster this is. A local activity. */
  admitRunner(input: AdmitRunnerInput): Promise<AdmittedRunner>;
  /** Checks and completes the input of a deregistration; asks nobody. A local activity. */
  admitDeregistration(input: { input: unknown }): Promise<DeregistrationSpec>;
  /** Registers the runner, stores the registration in its Secret and creates its pod, in one. */
  provision(input: WithLocation<ProvisionInput>): Promise<ProvisionResult>;
  /** What an interrupted {@link provision} has left. */
  findProvisioned(input: WithLocation<FindProvisionedInput>): Promise<FoundProvision>;
  /** Waits until the pod is online, has ended or is gone; holds no slot meanwhile. */
  awaitPod(input: WithLocation<AwaitPodInput>): Promise<PodSnapshot>;
  /** The pod as it is now. */
  getPod(input: WithLocation<PodInput>): Promise<PodSnapshot>;
  /** Looks at the CI server until the runner is online there. */
  awaitRunnerOnline(input: AwaitRunnerOnlineInput): Promise<OnlineRunner>;
  /** Removes the registration of a runner, and nothing else. */
  removeRegistration(input: RemoveRegistrationInput): Promise<RegistrationRemoval>;
  /**
   * Deletes what ran: pod, registration Secret and claims, whichever are named. The one way out for all of them. Of a pod that was to go only
   * unless it had started, and has, the answer is how it looks: then nothing was deleted.
   */
  tearDown(input: WithLocation<TearDownInput>): Promise<PodDeletion | PodSnapshot>;
  /** Notes on claims that a pod may still write to them. */
  fenceClaims(input: WithLocation<FenceClaimsInput>): Promise<void>;
  /** Waits until nothing can write to the claims any more from a node that was lost, by {@link fenceClaims}. */
  awaitClaims(input: WithLocation<ClaimsInput>): Promise<void>;
}

export interface AdmitRunnerInput {
  readonly input: unknown;
  readonly workflowId: string;
  readonly firstRunId: string;
  /** The run continues another, whose pods are there: a worker of another place leaves it alone, and what is not accepted any more is drained. */
  readonly continued?: { readonly location: Location };
}

export interface ProvisionInput {
  /** At the CI server. */
  readonly runnerName: string;
  /** Absent: no CI server has to know it. */
  readonly ciServer?: {
    readonly credential: string;
    readonly registration: Omit<RegisterRequest, 'name'>;
  };
  readonly pod: PodRequest;
  readonly credentialsRetryMs: number;
  /** The answer may wait for the runner to be online, but no longer than this: then a deadline of the pod's is due. */
  readonly completeWithinMs: number;
}

/** Free of secrets: those stay in the runner's Secret. */
export interface ProvisionResult {
  readonly runnerId?: string;
  readonly pod: PodSnapshot;
}

/** What there is of a {@link ProvisionResult}; an id without a pod: it is registered, and no pod was made for it. */
export type FoundProvision = Partial<ProvisionResult>;

export interface FindProvisionedInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  /** It has a registration at a CI server. */
  readonly hasRegistration: boolean;
}

export interface PodInput {
  readonly pod: PodRef;
}

export interface AwaitPodInput extends PodInput {
  readonly until: PodCondition;
  /** Told as the wait begins. */
  readonly notify?: SetNotification;
}

export interface AwaitRunnerOnlineInput {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: { readonly id?: string; readonly name: string };
  /** First delay between two looks; doubles up to 30 s. */
  readonly intervalMs: number;
  readonly credentialsRetryMs: number;
}

/** A runner seen online at the CI server. */
export interface OnlineRunner {
  readonly runnerId: string;
  readonly busy: boolean;
}

export interface RemoveRegistrationInput {
  readonly scope: Scope;
  readonly credential: string;
  /** Found by its name where its id is not known. Removed only if it is one of Holdfast's, and of the worker's place. */
  readonly runner: { readonly id?: string; readonly name: string };
  /** `retry`: fail and be retried for as long as the runner is busy; `return`: answer `busy` at once. */
  readonly onBusy: 'retry' | 'return';
  /** Delay before the next try of a busy one; the retry policy's own backoff when absent. */
  readonly busyRetryMs?: number;
  /** Up to which that delay doubles. @default busyRetryMs: it does not */
  readonly maxBusyRetryMs?: number;
  readonly credentialsRetryMs: number;
}

export interface RegistrationRemoval {
  readonly result: RemovalResult;
  /** This is not the first try: an absent runner may have been removed by an earlier one whose answer was lost, as with its worker. */
  readonly afterRetry?: true;
  /** Tries for this runner, this one included. A lower bound: a worker that died took its count with it. */
  readonly attempts: number;
  readonly runnerId?: string;
}

export interface TearDownInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  /** Absent: the pod stays, or is gone. */
  readonly pod?: {
    /** Absent when provisioning never answered: the pod is then looked for by its deterministic name. */
    readonly ref?: PodRef;
    /** @default the pod's own; 0: at once */
    readonly gracePeriodSeconds?: number;
    /** For the log. */
    readonly reason?: string;
    /** Told to the supervisor before the pod is stopped. */
    readonly stopReason?: StopReason;
    /** The log's tail is kept first. */
    readonly saveLog?: boolean;
    /** Whoever asks has nothing to do before it is gone: the answer may wait for that a moment. */
    readonly waitForDeletion?: boolean;
    /** Left alone if its container has started by the time the deletion is carried out. */
    readonly unlessStarted?: boolean;
    /** Left alone if a job runs in it, or its runner has ended, by the time the deletion is carried out. */
    readonly unlessBusy?: boolean;
  };
  /** Told when the pod is gone, or with `early` at once. Of a local activity only, which does not end before. */
  readonly notify?: SetNotification & { readonly early: boolean };
  /** The Secret with the registration. */
  readonly secret?: boolean;
  /** Of these claims, those that are the life's own. */
  readonly claims?: readonly VolumeClaim[];
}

export interface ClaimsInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  readonly claims: readonly VolumeClaim[];
}

export interface FenceClaimsInput extends ClaimsInput {
  readonly writer: ClaimWriter;
}

/** What the deletion of a pod has come to. */
export type PodDeletion = 'deleted' | 'terminating';
