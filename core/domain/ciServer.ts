/** What the CI server is asked for and answers, as workflows and activities see it. Plain data, the same for every CI server. */

/** Where a runner is registered. `name` is `owner/repo` for a repository. */
export interface Scope {
  readonly kind: 'organization' | 'repository' | 'enterprise';
  readonly name: string;
}

/** How settings name a scope and what it is in, from the least specific to the most: `acme`, then `acme/web`; or `enterprises/big`. Lower case, because names are compared without case. */
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

/** A runner group of the CI server: the one of runners that name none, or by its ID or name. */
export type RunnerGroupRef = 'default' | { readonly id: string } | { readonly name: string };

/**
 * Whether a job of this repository can be for a runner of the scope. Who owns the repositories of an enterprise its name does not say.
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

export interface RegisterRequest {
  readonly scope: Scope;
  readonly name: string;
  readonly labels: readonly string[];
  readonly group: RunnerGroupRef;
  readonly ephemeral: boolean;
  /** `jit`: single-use just-in-time config (always ephemeral). `token`: a registration token the runner uses itself. */
  readonly mode: 'jit' | 'token';
  /** With `token`: the runner never updates itself. @default false */
  readonly disableUpdate?: boolean;
}

/** A job as the CI server lists it. Times are the CI server's own, ms since the epoch. */
export interface CiJob {
  readonly id: string;
  readonly runAttempt: number;
  /** `owner/repo`. */
  readonly repository: string;
  /** Normalized by the adapter: two labels are the same if their texts are. */
  readonly labels: readonly string[];
  readonly status: 'queued' | 'in_progress';
  readonly queuedAt: number;
  /** With `in_progress`. */
  readonly startedAt?: number;
  readonly runnerName?: string;
}

export interface CiJobList {
  readonly jobs: readonly CiJob[];
  /** Nothing was left out: a job that is not listed neither waits nor runs. False where there was more than one look may read. */
  readonly complete: boolean;
  /** So long before it was asked for the look had begun, in ms. @default 0 */
  readonly ageMs?: number;
}

/**
 * The last answer of the CI server to a removal, since anything else changed. `absent`: by the runner's id, which proves it; `unlisted`: its id
 * is not known, and no list has its name, which may be as old as lists are.
 */
export type RemovalResult = 'removed' | 'absent' | 'unlisted' | 'busy';
