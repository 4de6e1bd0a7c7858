import type {
  CiJob,
  CiJobList,
  RegisterRequest,
  RunnerGroupRef,
  Scope,
  VersionDeadline,
} from '../../core/domain/ciServer.ts';
import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import type { CiServerTraits } from '../../core/domain/ciServerTraits.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';
import type { JobReruns } from './jobReruns.ts';
import type { ScaleSets } from './scaleSets.ts';

/**
 * A runner as the CI server lists it. `busy: false` or `online: false` alone never permits a
 * deletion: lists can be stale.
 */
export interface CiRunner {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly busy: boolean;
  readonly labels: readonly string[];
}

/**
 * Credentials that a runner needs to register or to connect. They are secret: they stay in memory
 * and in the runner's Secret, and are never in the result of an activity.
 */
export interface Registration {
  readonly runnerName: string;
  /**
   * ID of the registration. Known immediately with a JIT configuration. With a registration token
   * it is known only after the runner has registered itself.
   */
  readonly runnerId?: string;
  /**
   * Scope and credential of the registration, so that the sweep can remove it after the workflow
   * has ended. Recorded by the caller; not part of the CI server's response.
   */
  readonly at?: CredentialScope;
  /**
   * Environment variables of the runner process, secret values included (for example
   * ACTIONS_RUNNER_INPUT_JITCONFIG or RUNNER_TOKEN).
   */
  readonly env: Readonly<Record<string, string>>;
}

/** Client of one CI server with one credential. Every method may throw {@link CiServerError}. */
export interface CiServer {
  readonly kind: CiServerKind;
  /** Optional capabilities of this kind of server. */
  readonly traits: CiServerTraits;
  /**
   * Returns whether the server answered the latest requests of this process. During an outage few
   * requests are sent and all others are rejected.
   * @default the server is always considered reachable
   */
  isReachable?(): boolean;
  /**
   * Returns why the worker's configuration does not permit the credential for this scope, group or
   * runner. The text is shown to people. Only {@link register} can check the name of a group.
   * @returns `undefined` if the use is permitted
   * @default the credential may be used for everything
   */
  accessError?(
    scope: Scope,
    group?: RunnerGroupRef,
    runner?: Partial<Pick<RegisterRequest, 'labels' | 'mode'>>,
  ): string | undefined;
  /**
   * Creates the registration of a runner.
   * @throws CiServerError of every kind but `busy`. `name_taken` is HTTP 409 for a JIT
   * configuration.
   */
  register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration>;
  /**
   * Returns the ID of the runner group with this name. Present with {@link CiServerTraits.groups}.
   * @throws CiServerError of every kind but `busy`. `rejected` means that the scope has no such
   * group.
   */
  runnerGroupId?(scope: Scope, name: string, signal?: AbortSignal): Promise<string>;
  /**
   * Returns the names of the runner groups that public repositories may use. Absent if the server
   * has no such groups.
   * @throws CiServerError of every kind but `busy`
   */
  publicGroups?(scope: Scope, signal?: AbortSignal): Promise<string[]>;
  /**
   * Returns one runner with a single request: by ID if it is known, otherwise by name.
   * @returns `undefined` if the server does not list the runner
   */
  findRunner(
    scope: Scope,
    runner: { id?: string; name: string },
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined>;
  /**
   * Returns all runners of the scope. The list may be a minute old.
   * @throws CiServerError. An incomplete list is `unavailable`.
   */
  listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]>;
  /**
   * Removes a registration.
   * @returns `removed`, or `absent` only if the same credential was seen to list the scope
   * @throws CiServerError `busy` (only with {@link CiServerTraits.refusesBusyRemoval}),
   * `credentials`, `rate_limited`, `unavailable` or `rejected`
   */
  removeRegistration(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'>;
  /**
   * Stops assigning jobs to the runner. The call is idempotent and ignores a runner that no longer
   * exists. Present with {@link CiServerTraits.canDisable}.
   */
  disable?(scope: Scope, runnerId: string, signal?: AbortSignal): Promise<void>;
  /**
   * Returns the jobs of the scope that are queued or in progress, in case webhook events were lost.
   * It costs one request per repository and per run in progress, so call it every few minutes at
   * most.
   * @param labels - limits the list to jobs that a runner with these labels can take
   * @param maxAgeMs - maximum age of a cached list (ms). @default 0
   */
  listQueuedJobs?(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs?: number,
  ): Promise<CiJobList>;
  /**
   * Returns one job, for scopes with too many jobs to list.
   * @param job - its ID, and its repository as `owner/repo`
   * @returns `absent` if the job is neither queued nor in progress; `undefined` if its state is
   * unknown now
   */
  getJob?(
    scope: Scope,
    job: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined>;
  /**
   * Returns until when the server accepts runners of a version.
   * @param version - such as `2.338.0`
   * @returns `undefined` if the server does not know the version, or reports no deadlines
   * @throws CiServerError
   * @default the server reports no deadlines
   */
  versionDeadline?(
    scope: Scope,
    version: string,
    signal?: AbortSignal,
  ): Promise<VersionDeadline | undefined>;
  /**
   * Runs jobs again. Present if the server can do so, and the worker's configuration permits it for
   * the credential.
   */
  readonly reruns?: JobReruns;
  /**
   * Requests redelivery of failed webhook deliveries, once for each delivery.
   * @default the server or this credential cannot redeliver
   */
  redeliverFailed?(limits: { maxRedeliveries: number }, signal?: AbortSignal): Promise<Redelivered>;
  /**
   * Scale sets of the server.
   * @default the server has no scale sets
   */
  readonly scaleSets?: ScaleSets;
}

/** Result of one request for redelivery of failed webhook deliveries. */
export interface Redelivered {
  /** Number of deliveries requested again now. */
  readonly redelivered: number;
  /** Number of failed deliveries left for the next call. */
  readonly postponed: number;
}

/**
 * Returns the CI server client of a credential in the worker's configuration.
 * @throws UnknownCredentialError if the configuration has no such credential
 */
export interface CiServers {
  get(credential: string): CiServer;
}

/** The worker's configuration has no credential with the requested name. */
export class UnknownCredentialError extends Error {
  override readonly name = 'UnknownCredentialError';
}
