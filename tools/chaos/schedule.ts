import type { CancelMode } from '../../core/contract/index.ts';
import { seededRandom } from '../shared/random.ts';
import { FAULT_KINDS, LONG, faultKindInfo, type FaultKind, type Resource } from './faultKinds.ts';

export interface ScheduleOptions {
  readonly seed: number;
  /** Length of the part in which things go wrong, in ms. */
  readonly durationMs: number;
  /** How many runners there shall be about. */
  readonly runners: number;
  readonly nodes: 'kwok' | 'kubelet';
  /** Only faults that keep jobs waiting, one after the other, each long enough for that. @default false */
  readonly why?: boolean;
}

/** A fault to come. Every one ends by itself before the schedule does. */
export interface PlannedFault {
  /** Since the start, in ms. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** How long it lasts, in ms; 0: it happens at once. */
  readonly forMs: number;
  /** Chooses whom it hits among those that are there then: 0 to 1. */
  readonly pick: number;
}

/** How a runner by itself is told to go; `plain`: the cancellation of its workflow. */
export type CancelKind = CancelMode | 'plain' | 'retire';
export const CANCEL_KINDS: readonly CancelKind[] = ['drain', 'stop', 'force', 'plain', 'retire'];

/** Something that users do. */
export type PlannedWork = { readonly atMs: number } & (
  | { readonly kind: 'job'; readonly set: 'ephemeral' | 'static'; readonly takesMs: number }
  /** A runner by itself, with its jobs, one after another. */
  | {
      readonly kind: 'runner';
      readonly ephemeral: boolean;
      readonly replaces: boolean;
      readonly jobsMs: readonly number[];
    }
  | { readonly kind: 'tell'; readonly how: CancelKind; readonly pick: number }
  | { readonly kind: 'cancelJob'; readonly pick: number }
  /** The set gets another template. */
  | { readonly kind: 'rollout'; readonly set: 'ephemeral' | 'static' }
);

export interface Schedule {
  readonly faults: readonly PlannedFault[];
  readonly work: readonly PlannedWork[];
}

/** Runners are coming up until then. */
const FIRST_FAULT_MS = 5_000;
const LONG_APART_MS = 20_000;
const FAULTS_APART_MS = [1_000, 6_000] as const;
const ROLLOUT_EVERY_MS = 60_000;
const JOB_MS = [300, 12_000] as const;
/** A fleet of so many gets one job a second, and a runner by itself every five: a quarter of what it does undisturbed, and about what is left of that. */
const RUNNERS_PER_JOB_A_SECOND = 60;

/** What will happen, and when: the same for the same options. Pure. */
export function scheduleOf(options: ScheduleOptions): Schedule {
  const faults = options.why === true ? longFaultsOf(options) : faultsOf(options);
  return { faults, work: workOf(options) };
}

/** Dealt from a shuffled deck, so that in a run of some minutes every kind has its turn; a card that does not fit now waits for its time. */
function faultsOf({ seed, durationMs, nodes }: ScheduleOptions): PlannedFault[] {
  const random = seededRandom(seed);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(
    (kind) => (faultKindInfo(kind).nodes ?? nodes) === nodes,
  );
  const cards = kinds.flatMap((kind) =>
    Array.from({ length: faultKindInfo(kind).cards }, () => kind),
  );
  const heldUntil = new Map<Resource, number>();
  const faults: PlannedFault[] = [];
  let deck: FaultKind[] = [];
  for (let atMs = FIRST_FAULT_MS; atMs < durationMs; atMs += between(random, FAULTS_APART_MS)) {
    if (deck.length === 0) deck = shuffled(cards, random);
    const index = deck.findIndex((kind) =>
      faultKindInfo(kind).holds.every((hold) => (heldUntil.get(hold) ?? 0) <= atMs),
    );
    const [pick, length] = [random(), random()];
    const [kind] = index < 0 ? [] : deck.splice(index, 1);
    if (kind === undefined) continue;
    const { lastsMs: [least, most], holds } = faultKindInfo(kind); // prettier-ignore
    const forMs = Math.round(least + (most - least) * length);
    if (atMs + forMs > durationMs) continue;
    for (const hold of holds) heldUntil.set(hold, atMs + forMs);
    faults.push({ atMs, kind, forMs, pick });
  }
  return faults;
}

/** Each kind in turn, with time between two for what the one before has held back. */
function longFaultsOf({ seed, durationMs, nodes }: ScheduleOptions): PlannedFault[] {
  const random = seededRandom(seed);
  const kinds = (Object.keys(FAULT_KINDS) as FaultKind[]).filter((kind) => {
    const info = faultKindInfo(kind);
    return info.named !== undefined && (info.nodes ?? nodes) === nodes;
  });
  const faults: PlannedFault[] = [];
  let deck: FaultKind[] = [];
  for (let atMs = FIRST_FAULT_MS; ;) {
    if (deck.length === 0) deck = shuffled(kinds, random);
    const kind = deck.shift();
    const forMs = between(random, LONG);
    if (kind === undefined || atMs + forMs > durationMs) return faults;
    faults.push({ atMs, kind, forMs, pick: random() });
    atMs += forMs + LONG_APART_MS;
  }
}

/** Of another stream of numbers than the faults: a new kind of fault changes nobody's work. */
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
    kind: 'tell',
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

function between(random: () => number, [least, most]: readonly [number, number]): number {
  return Math.round(least + (most - least) * random());
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items.map((item) => ({ item, rank: random() })).toSorted((a, b) => a.rank - b.rank).map(({ item }) => item); // prettier-ignore
}
