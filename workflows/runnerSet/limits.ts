/** Applies a set's limits to its demand and to the time of its runners. Pure. */
import type { SetLimits } from '../../core/contract/index.ts';
import { matchesPattern } from '../../core/domain/filterPattern.ts';

/** Number of jobs that require a runner. */
export interface JobCount {
  readonly queued: number;
  readonly running: number;
  /** Number of this set's own jobs that it has rerouted to other sets. @default 0 */
  readonly rerouted?: number;
}

/** Demand of a set after its limits are applied. */
export interface WithinLimits {
  readonly queued: number;
  readonly running: number;
  /** Number of queued jobs within the limits, by repository. Absent if there is no limit. */
  readonly allowed?: ReadonlyMap<string, number>;
  /** Number of queued jobs held by a limit, by repository or by the names of the limit's entry. */
  readonly limited: ReadonlyMap<string, number>;
}

/**
 * Maximum number of repositories whose entries are cached. There may be as many repositories as
 * jobs.
 */
const MAX_KNOWN = 20_000;

/** Limits of one declaration. */
export class JobLimits {
  readonly of: SetLimits;
  readonly #names: readonly (readonly string[])[];
  /** Index of the entry that names a repository, or -1. */
  readonly #entries = new Map<string, number>();

  constructor(limits: SetLimits) {
    this.of = limits;
    this.#names = (limits.repositories ?? []).map(({ repositories }) =>
      repositories.map((name) => name.toLowerCase()),
    );
  }

  /**
   * Whether there is a limit for repositories. Without one every job counts, whatever its
   * repository.
   */
  get any(): boolean {
    return this.of.perRepository !== undefined || this.#names.length > 0;
  }

  /**
   * Applies the limits to these jobs.
   *
   * Jobs of a repository beyond its limit count neither as queued nor as running. The CI server may
   * assign them to runners that were started for other jobs. If they counted, runners would be
   * started in their place again and again.
   *
   * Rerouted jobs use up the limit of their repository. Otherwise each limited job would be
   * rerouted after the previous one, until all are in other sets.
   */
  count(jobs: ReadonlyMap<string, JobCount>): WithinLimits {
    const { perRepository = Number.POSITIVE_INFINITY, repositories = [] } = this.of;
    const remaining = repositories.map(({ max }) => max);
    for (const [repository, { rerouted = 0 }] of jobs) {
      const entry = this.#entryOf(repository);
      if (entry >= 0) remaining[entry] = Math.max(0, (remaining[entry] ?? 0) - rerouted);
    }
    const limited = new Map<string, number>();
    const allowed = new Map<string, number>();
    const total = { queued: 0, running: 0 };
    for (const [repository, { queued, running, rerouted = 0 }] of jobs) {
      const entry = this.#entryOf(repository);
      const alone = Math.min(queued + running, Math.max(0, perRepository - rerouted));
      const counted = Math.min(alone, remaining[entry] ?? Number.POSITIVE_INFINITY);
      if (entry >= 0) remaining[entry] = (remaining[entry] ?? 0) - counted;
      const served = Math.min(running, counted);
      total.running += served;
      total.queued += counted - served;
      allowed.set(repository, counted - served);
      // Running jobs are never limited.
      const queuedBeyond = (limit: number): number =>
        Math.max(0, queued - Math.max(0, limit - running));
      add(limited, repository, queuedBeyond(alone));
      add(
        limited,
        repositories[entry]?.repositories.join(', ') ?? '',
        queuedBeyond(counted) - queuedBeyond(alone),
      );
    }
    return { ...total, allowed, limited };
  }

  #entryOf(repository: string): number {
    const name = repository.toLowerCase();
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    if (this.#entries.size >= MAX_KNOWN) this.#entries.clear();
    const entry = this.#names.findIndex((names) =>
      names.some((pattern) => matchesPattern(pattern, name)),
    );
    this.#entries.set(name, entry);
    return entry;
  }
}

function add(counts: Map<string, number>, name: string, count: number): void {
  if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
}

/** Sum of the run times of a set's runners in one day (UTC). */
export interface RunnerTime {
  /** Start of the day (ms since the epoch). */
  readonly day: number;
  /** Time used until `at` (ms). */
  readonly used: number;
  readonly at: number;
  /** Number of runners since `at`. */
  readonly runners: number;
}

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;

/**
 * Adds the run time since the last call.
 *
 * @param runners - number of runners from now on
 */
export function accumulateRunnerTime(
  known: RunnerTime | undefined,
  runners: number,
  now: number,
): RunnerTime {
  const day = Math.floor(now / DAY_MS) * DAY_MS;
  if (known === undefined) return { day, used: 0, at: now, runners };
  const since = Math.max(known.at, day);
  const before = known.day === day ? known.used : 0;
  return {
    day,
    used: before + Math.max(0, now - since) * known.runners,
    at: Math.max(now, known.at),
    runners,
  };
}

/** Whether the day's time is used up. */
export function isExhausted({ maxRunnerHours }: SetLimits, time: RunnerTime | undefined): boolean {
  return (
    maxRunnerHours !== undefined && time !== undefined && time.used >= maxRunnerHours * HOUR_MS
  );
}

/** Returns the start of the next day (ms since the epoch). */
export const nextDay = (now: number): number => (Math.floor(now / DAY_MS) + 1) * DAY_MS;

/** Returns the used time in hours, rounded to one decimal, for display. */
export const runnerHours = ({ used }: RunnerTime): number => Math.round((used / HOUR_MS) * 10) / 10;
