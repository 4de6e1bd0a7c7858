import type { CiJob, CiJobList, Scope } from '../../core/domain/ciServer.ts';
import { labelsMatch } from '../../core/domain/labels.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Clock } from './clock.ts';
import { SingleFlight } from './singleFlight.ts';

/** Result of a search for jobs, and when the search began (ms, monotonic). */
type Found = CiJobList & { readonly beganAt: number };

/**
 * Searches for jobs, one for each scope at a time. Concurrent callers share a search, which is not
 * aborted for one of them, and its result is kept for callers that accept an older one.
 */
export class SharedSearch {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #search: (scope: Scope) => Promise<CiJobList>;
  readonly #calls = new Map<string, SingleFlight<Found>>();
  /** Latest result of each scope. */
  readonly #found = new Map<string, Found>();

  constructor(clock: Pick<Clock, 'elapsed'>, search: (scope: Scope) => Promise<CiJobList>) {
    this.#clock = clock;
    this.#search = search;
  }

  /**
   * Returns the jobs of a scope.
   * @param offered - limits the list to jobs that a runner with these normalized labels can take
   * @param maxAgeMs - maximum age of an earlier result (ms)
   */
  async list(
    scope: Scope,
    { offered, maxAgeMs }: { offered: ReadonlySet<string> | undefined; maxAgeMs: number },
    signal?: AbortSignal,
  ): Promise<CiJobList> {
    signal?.throwIfAborted();
    const key = `${scope.kind}:${scope.name}`;
    const call =
      this.#calls.get(key) ?? new SingleFlight(async () => await this.#searchNow(key, scope));
    this.#calls.set(key, call);
    const askedAt = this.#clock.elapsed();
    const isFresh = (found: Found | undefined): found is Found =>
      found !== undefined && found.beganAt >= askedAt - maxAgeMs;
    let found = this.#found.get(key);
    if (!isFresh(found) && maxAgeMs > 0) found = await call.run(signal);
    if (!isFresh(found)) found = await call.runFresh(signal);
    const { jobs, beganAt, ...list } = found;
    const fits = (job: CiJob): boolean => offered === undefined || labelsMatch(offered, job.labels);
    return {
      ...list,
      jobs: jobs.filter(fits),
      ...omitUndefined({ ageMs: beganAt < askedAt ? askedAt - beganAt : undefined }),
    };
  }

  async #searchNow(key: string, scope: Scope): Promise<Found> {
    const beganAt = this.#clock.elapsed();
    const found = { ...(await this.#search(scope)), beganAt };
    this.#found.set(key, found);
    return found;
  }
}
