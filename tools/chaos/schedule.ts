import type { CancelMode } from '../../core/contract/index.ts';
import { seededRandom } from '../shared/random.ts';
import { FAULT_KINDS, LONG, faultKindInfo, type FaultKind, type Resource } from './faultKinds.ts';

/** Options of a schedule. */
export interface ScheduleOptions {
  readonly seed: number;
  /** Duration of the part with faults (ms). */
  readonly durationMs: number;
  /** Approximate number of runners. */
  readonly runners: number;
  readonly nodes: 'kwok' | 'kubelet';
  /**
   * Whether to use only faults that keep jobs waiting, one at a time, each for a minute.
   * @default false
   */
  readonly why?: boolean;
}

/** A planned fault. Every fault ends before the schedule does. */
export interface PlannedFault {
  /** Time since the start (ms). */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** Duration (ms). 0 for a fault without a duration. */
  readonly forMs: number;
  /** Number from 0 to 1 that chooses the target among those that exist then. */
  readonly pick: number;
}

/** Kind of stop request for a runner without a set. `plain`: cancellation of its workflow. */
export type CancelKind = CancelMode | 'plain' | 'retire';
/** All kinds of stop requests. */
export const CANCEL_KINDS: readonly CancelKind[] = ['drain', 'stop', 'force', 'plain', 'retire'];

/** A planned action of users. */
export type PlannedWork = { readonly atMs: number } & (
  | { readonly kind: 'job'; readonly set: 'ephemeral' | 'static'; readonly takesMs: number }
  /** A runner without a set, with its jobs, one after another. */
  | {
      readonly kind: 'runner';
      readonly ephemeral: boolean;
      readonly replaces: boolean;
      readonly jobsMs: readonly number[];
    }
  | { readonly kind: 'stopRunner'; readonly how: CancelKind; readonly pick: number }
  | { readonly kind: 'cancelJob'; readonly pick: number }
  /** Change of the template of a set. */
  | { readonly kind: 'rollout'; readonly set: 'ephemeral' | 'static' }
);

/** Planned faults and actions of users. */
export interface Schedule {
  readonly faults: readonly PlannedFault[];
  readonly work: readonly PlannedWork[];
}

/** Time of the first fault (ms). Runners start before. */
const FIRST_FAULT_MS = 5_000;
const LONG_GAP_MS = 20_000;
const FAULT_INTERVAL_MS = [1_000, 6_000] as const;
const ROLLOUT_EVERY_MS = 60_000;
const JOB_MS = [300, 12_000] as const;
/**
 * Number of runners for which one job a second is queued, and one runner without a set is started
 * every five seconds. Without faults such a fleet could run four times as many jobs.
 */
const RUNNERS_PER_JOB_A_SECOND = 60;

/** Returns the schedule for the options, always the same for the same options. Pure. */
export function scheduleOf(options: ScheduleOptions): Schedule {
  const faults = options.why === true ? longFaultsOf(options) : faultsOf(options);
  return { faults, work: workOf(options) };
}

/**
 * Plans the faults in shuffled rounds, so that a run of some minutes has every kind. A fault that
 * would overlap with one of the same resource is postponed.
 */
function faultsOf({ seed, durationMs, nodes }: ScheduleOptions): PlannedFault[] {
  const random = seededRandom(seed);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(
    (kind) => (faultKindInfo(kind).nodes ?? nodes) === nodes,
  );
  const all = kinds.flatMap((kind) =>
    Array.from({ length: faultKindInfo(kind).perRound }, () => kind),
  );
  const busyUntil = new Map<Resource, number>();
  const faults: PlannedFault[] = [];
  let round: FaultKind[] = [];
  for (let atMs = FIRST_FAULT_MS; atMs < durationMs; atMs += between(random, FAULT_INTERVAL_MS)) {
    if (round.length === 0) round = shuffled(all, random);
    const index = round.findIndex((kind) =>
      faultKindInfo(kind).resources.every((resource) => (busyUntil.get(resource) ?? 0) <= atMs),
    );
    const [pick, length] = [random(), random()];
    const [kind] = index < 0 ? [] : round.splice(index, 1);
    if (kind === undefined) continue;
    const { lastsMs: [min, max], resources } = faultKindInfo(kind); // prettier-ignore
    const forMs = Math.round(min + (max - min) * length);
    if (atMs + forMs > durationMs) continue;
    for (const resource of resources) busyUntil.set(resource, atMs + forMs);
    faults.push({ atMs, kind, forMs, pick });
  }
  return faults;
}

/** Plans each kind in turn, with time for the jobs that waited because of the previous one. */
function longFaultsOf({ seed, durationMs, nodes }: ScheduleOptions): PlannedFault[] {
  const random = seededRandom(seed);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter((kind) => {
    const info = faultKindInfo(kind);
    return info.expectedCauses !== undefined && (info.nodes ?? nodes) === nodes;
  });
  const faults: PlannedFault[] = [];
  let round: FaultKind[] = [];
  for (let atMs = FIRST_FAULT_MS; ;) {
    if (round.length === 0) round = shuffled(kinds, random);
    const kind = round.shift();
    const forMs = between(random, LONG);
    if (kind === undefined || atMs + forMs > durationMs) return faults;
    faults.push({ atMs, kind, forMs, pick: random() });
    atMs += forMs + LONG_GAP_MS;
  }
}

/** Plans the actions of users, with a separate seed: a new kind of fault does not change them. */
function workOf({ seed, durationMs, runners }: ScheduleOptions): PlannedWork[] {
  const random = seededRandom(seed ^ 0x5eed);
  const work: PlannedWork[] = [];
  const jobEveryMs = (1_000 * RUNNERS_PER_JOB_A_SECOND) / runners;
  const every = (meanMs: number, make: (atMs: number) => PlannedWork): void => {
    for (
      let atMs = between(random, [0, meanMs]);
      atMs < durationMs;
      atMs += between(random, [meanMs / 2, meanMs * 1.5])
    )
      work.push(make(atMs));
  };
  every(jobEveryMs, (atMs) => ({
    atMs,
    kind: 'job',
    set: random() < 0.7 ? 'ephemeral' : 'static',
    takesMs: between(random, JOB_MS),
  }));
  every(jobEveryMs * 5, (atMs) => {
    const ephemeral = random() < 0.6;
    const jobs = ephemeral ? 1 : 1 + Math.floor(random() * 3);
    return {
      atMs,
      kind: 'runner',
      ephemeral,
      replaces: random() < 0.5,
      jobsMs: Array.from({ length: jobs }, () => between(random, JOB_MS)),
    };
  });
  every(jobEveryMs * 10, (atMs) => ({
    atMs,
    kind: 'stopRunner',
    how: CANCEL_KINDS[Math.floor(random() * CANCEL_KINDS.length)] ?? 'drain',
    pick: random(),
  }));
  every(jobEveryMs * 20, (atMs) => ({ atMs, kind: 'cancelJob', pick: random() }));
  every(ROLLOUT_EVERY_MS, (atMs) => ({
    atMs,
    kind: 'rollout',
    set: random() < 0.5 ? 'ephemeral' : 'static',
  }));
  return work.toSorted((a, b) => a.atMs - b.atMs);
}

function between(random: () => number, [min, max]: readonly [number, number]): number {
  return Math.round(min + (max - min) * random());
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items.map((item) => ({ item, rank: random() })).toSorted((a, b) => a.rank - b.rank).map(({ item }) => item); // prettier-ignore
}
