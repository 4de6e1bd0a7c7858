/** What a set's limits make of its demand, and of its runners' time. Pure. */
import type { SetLimits } from '../../core/contract/index.ts';
import { matchesPattern } from '../../core/domain/filterPattern.ts';

/** Jobs that ask for a place. */
export interface JobCount {
  readonly queued: number;
  readonly running: number;
  /** Jobs of its own that it has passed on to other sets. @default 0 */
  readonly rerouted?: number;
}

/** Demand of a set after its limits are applied. */
export interface WithinLimits {
  readonly queued: number;
  readonly running: number;
  /** Queued jobs within the limits, by repository. Absent: there is no limit. */
  readonly allowed?: ReadonlyMap<string, number>;
  /**
   * Number of queued jobs that a limit holds back, by repository or by the names of the limit's
   * entry.
   */
  readonly limited: ReadonlyMap<string, number>;
}

/** Repositories whose entries are remembered: there may be as many as jobs. */
const MAX_KNOWN = 20_000;

/** The limits of one declaration. */
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

  /** Without one every job counts, whatever its repository. */
  get any(): boolean {
    return this.of.perRepository !== undefined || this.#names.length > 0;
  }

  /**
   * Of these jobs, those that the set has runners for. What a repository has beyond its limit counts neither as queued nor as running: the CI server may give its jobs
   * runners that were started for others', and then others must not be started in their place, again and again. What was passed on takes up its repository's limit:
   * else the next that it holds back would follow, until all of them are elsewhere.
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
      // What runs already is not held back.
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

/** The time of a set's runners together, in one day (UTC). */
export interface RunnerTime {
  /** When the day began (ms since the epoch). */
  readonly day: number;
  /** ms, until `at`. */
  readonly used: number;
  readonly at: number;
  /** Runners since then. */
  readonly runners: number;
}

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;

/** @param runners - that there are from now on */
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

/** Is the day's time used up? */
export function isExhausted({ maxRunnerHours }: SetLimits, time: RunnerTime | undefined): boolean {
  return (
    maxRunnerHours !== undefined && time !== undefined && time.used >= maxRunnerHours * HOUR_MS
  );
}

/** When the next day begins (ms since the epoch). */
export const nextDay = (now: number): number => (Math.floor(now / DAY_MS) + 1) * DAY_MS;

/** As people read it: hours, to a tenth. */
export const runnerHours = ({ used }: RunnerTime): number => Math.round((used / HOUR_MS) * 10) / 10;
