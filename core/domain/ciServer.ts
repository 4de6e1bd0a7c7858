/**
 * Data exchanged with a CI server, as workflows and activities use it. It is the same for every
 * kind of CI server.
 */

/** Scope in which a runner is registered. `name` is `owner/repo` for a repository. */
export interface Scope {
  readonly kind: 'organization' | 'repository' | 'enterprise';
  readonly name: string;
}

/**
 * Returns the names of a scope in settings, from the least to the most specific: `acme`, then
 * `acme/web`; or `enterprises/big`. They are in lower case, because names are compared without
 * case.
 */
export function scopeKeys({ kind, name }: Scope): string[] {
  const key = name.toLowerCase();
  switch (kind) {
    case 'enterprise':
      return [`enterprises/${key}`];
    case 'organization':
      return [key];
    case 'repository':
      return [key.split('/')[0] ?? '', key];
  }
}

/** Reference to a runner group of the CI server: the default group, or one by its ID or name. */
export type RunnerGroupRef = 'default' | { readonly id: string } | { readonly name: string };

/**
 * Returns whether a job of this repository may be for a runner of the scope. For an enterprise it
 * is always true, because the name of an enterprise does not determine the owners in it.
 * @param repository - `owner/repo`
 */
export function scopeHolds({ kind, name }: Scope, repository: string): boolean {
  const [scope, job] = [name.toLowerCase(), repository.toLowerCase()];
  return (
    kind === 'enterprise' ||
    job === scope ||
    (kind === 'organization' && job.split('/')[0] === scope)
  );
}

/** Request to register a runner at the CI server. */
export interface RegisterRequest {
  readonly scope: Scope;
  readonly name: string;
  readonly labels: readonly string[];
  readonly group: RunnerGroupRef;
  readonly ephemeral: boolean;
  /**
   * `jit`: single-use just-in-time config (always ephemeral). `token`: a registration for any number
   * of jobs, or a registration token that the runner uses itself.
   */
  readonly mode: 'jit' | 'token';
  /** Whether the runner never updates itself. Only with `token`. @default false */
  readonly disableUpdate?: boolean;
  /**
   * Name of the scale set that the runner belongs to. The scale set then determines its labels.
   * Only with `jit`.
   * @default the runner belongs to none
   */
  readonly scaleSet?: string;
}

/** A job as the CI server lists it. Times are the CI server's own, ms since the epoch. */
export interface CiJob {
  readonly id: string;
  readonly runAttempt: number;
  /** ID of the workflow run. Absent if the CI server does not name it. */
  readonly runId?: string;
  /** Repository as `owner/repo`. */
  readonly repository: string;
  /** Labels, normalized by the adapter: two labels are the same if their strings are equal. */
  readonly labels: readonly string[];
  readonly status: 'queued' | 'in_progress';
  readonly queuedAt: number;
  /** Present with `in_progress`. */
  readonly startedAt?: number;
  readonly runnerName?: string;
}

/** Jobs that the CI server lists for a scope. */
export interface CiJobList {
  readonly jobs: readonly CiJob[];
  /**
   * Whether the list is complete: a job that is not in it is neither queued nor running. False if
   * there were more jobs than one check may read.
   */
  readonly complete: boolean;
  /**
   * Time at which the request budget for such lists is renewed (ms since the epoch). Absent: the
   * budget did not limit the list.
   */
  readonly budgetUntil?: number;
  /** Whether the CI server has no list for this kind of scope. Absent: it has one. */
  readonly unsupported?: true;
  /** Age of the check when it was requested, if an earlier result is reused (ms). @default 0 */
  readonly ageMs?: number;
}

/** Until when the CI server accepts a runner version (ms since the epoch). Absent: no end is known. */
export interface VersionDeadline {
  /** Runners of the version get jobs until then. */
  readonly jobsUntil?: number;
  /** Runners of the version can register until then. */
  readonly registrationUntil?: number;
}

/**
 * Latest response of the CI server to a removal. `absent`: proven by the runner's ID. `unlisted`:
 * the ID is not known and no list contains the name; such a list may be outdated.
 */
export type RemovalResult = 'removed' | 'absent' | 'unlisted' | 'busy';
