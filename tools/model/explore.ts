/**
 * Goes through all that may happen, in the order of how much goes wrong: first every story without a mishap, to its very end, then those with one, and
 * so on; within that breadth first. So the first story of something wrong is one with as little in it as can be.
 */
import { checkState, checkStep } from './checks.ts';
import { noteDeadline, proceed, tidy } from './course.ts';
import { LIFE } from './life.ts';
import { Mind, type Tables } from './mind.ts';
import { beginning, decode, encode, FIELDS, type Setup, type State } from './state.ts';
import { isMishap, isPromised, WORLD, type Move } from './world.ts';

const MOVES: readonly Move[] = [...LIFE, ...WORLD];
/** The numbers of the moves that there are at each place of a life. */
const MOVES_AT = Object.fromEntries(
  FIELDS.at.map((at) => [
    at,
    [...MOVES.keys()].filter((which) => MOVES[which]?.at === undefined || MOVES[which]?.at === at),
  ]),
) as Record<State['at'], number[]>;
export const SETUPS: readonly Setup[] = FIELDS.setup;
/** Mishaps in a story of each kind of runner: as many as let every kind be complete, and all of them take a minute. */
export const DEPTHS: Readonly<Record<Setup, number>> = {
  ephemeral: 1,
  'ephemeral, silent': 2,
  'ephemeral, to be replaced': 1,
  static: 1,
  'static, silent': 1,
  command: 2,
  'checkpointing command': 2,
};
/** Runners of the same life that were lost before their container started. For the largest kind that is left to the others, whose verdicts are the same. */
const lossesOf = (setup: Setup): number[] => (setup === 'static' ? [0] : [0, 3]);

export interface Limits {
  readonly setups?: readonly Setup[];
  /** Mishaps in a story. */
  readonly depth?: number;
  /** Names of the mishaps and deadlines that may happen. @default all */
  readonly mishaps?: ReadonlySet<string>;
  /** Stops when there are so many. */
  readonly states?: number;
  /** Stops at the first thing that is wrong besides these (see {@link keyOf}). */
  readonly besides?: ReadonlySet<string>;
}

export interface Step {
  readonly move: string;
  readonly state: State;
}

/** Names of all mishaps and deadlines. */
export const MISHAPS: readonly string[] = [
  ...new Set(MOVES.filter(isMishap).map(({ name }) => name)),
];

/** All pairs of mishaps, one with itself included. */
export const PAIRS: readonly (readonly [string, string])[] = MISHAPS.flatMap((one, index) =>
  MISHAPS.slice(index).map((other) => [one, other] as const),
);

/** Something that is wrong, and the shortest way to it. */
export interface Wrong {
  readonly what: string;
  readonly setup: Setup;
  /** How many states it was seen in. */
  count: number;
  readonly story: readonly Step[];
}

/** One kind of thing that is wrong with one kind of runner. */
export const keyOf = ({ setup, what }: Pick<Wrong, 'setup' | 'what'>): string =>
  `${setup}: ${what}`;

export interface Exploration {
  readonly states: number;
  readonly steps: number;
  /** Mishaps of the last state that was looked at. */
  readonly depth: number;
  /** Nothing with so few mishaps was left out. */
  readonly complete: boolean;
  readonly seconds: number;
  readonly ends: number;
  readonly wrongs: readonly Wrong[];
  readonly mind: Mind;
}

export function explore(limits: Limits = {}, tables?: Tables): Exploration {
  const {
    setups = SETUPS,
    depth = 1,
    states = Number.POSITIVE_INFINITY,
    besides,
    mishaps,
  } = limits;
  const startedAt = performance.now();
  const mind = new Mind(tables);
  const known = new Map<string, number>();
  const keys: string[] = [];
  const parents: number[] = [];
  const by: number[] = [];
  const costs: number[] = [];
  const expanded: boolean[] = [];
  /** What is promised: from one state to another. */
  const promisedFrom: number[] = [];
  const promisedTo: number[] = [];
  const levels: number[][] = Array.from({ length: depth + 1 }, () => []);
  /** Where a promised deadline leads beyond what is explored. */
  const leadsOn = new Set<number>();
  const wrongs = new Map<string, Wrong>();
  let steps = 0;
  let ends = 0;
  let found = false;
  let level = 0;

  const note = (key: string, parent: number, move: number, cost: number): number => {
    let index = known.get(key);
    if (index === undefined) {
      index = keys.push(key) - 1;
      known.set(key, index);
    } else if ((costs[index] ?? 0) <= cost) return index;
    parents[index] = parent;
    by[index] = move;
    costs[index] = cost;
    levels[cost]?.push(index);
    return index;
  };
  const storyOf = (last: number, extra?: Step): Step[] => {
    const story: Step[] = extra === undefined ? [] : [extra];
    for (let at = last; at >= 0; at = parents[at] ?? -1)
      story.unshift({
        move: MOVES[by[at] ?? -1]?.name ?? 'the beginning',
        state: decode(keys[at] ?? ''),
      });
    return story;
  };
  const wrong = (what: string, state: State, story: () => Step[]): void => {
    const key = keyOf({ setup: state.setup, what });
    const seen = wrongs.get(key);
    if (besides?.has(key) === false) found = true;
    if (seen === undefined) wrongs.set(key, { what, setup: state.setup, count: 1, story: story() });
    else seen.count++;
  };
  const expand = (at: number): void => {
    const state = decode(keys[at] ?? '');
    const broken = checkState(state, mind);
    if (broken !== undefined) wrong(broken, state, () => storyOf(at));
    if (state.at === 'over' || state.at === 'replacing') ends++;
    if (state.at === 'over') return;
    for (const which of MOVES_AT[state.at]) {
      const move = MOVES[which] as Move;
      const cost = level + (isMishap(move) ? 1 : 0);
      const isOut = cost > depth || (isMishap(move) && mishaps?.has(move.name) === false);
      const raw = isOut && !isPromised(move) ? undefined : move.next(state, mind);
      if (raw === undefined) continue;
      if (isOut) {
        leadsOn.add(at);
        continue;
      }
      const settled =
        raw.belief === state.belief ? raw : proceed(noteDeadline(state, raw, mind), mind);
      const next = tidy(settled, mind);
      const key = encode(next);
      if (key === keys[at]) continue;
      steps++;
      const badStep = which < LIFE.length ? checkStep(state, next, mind) : undefined;
      if (badStep !== undefined)
        wrong(badStep, state, () => storyOf(at, { move: move.name, state: next }));
      const seen = note(key, at, which, cost);
      if (isPromised(move)) {
        promisedFrom.push(at);
        promisedTo.push(seen);
      }
    }
  };

  for (const setup of setups)
    for (const losses of lossesOf(setup))
      note(encode({ ...beginning(setup), belief: mind.firstBelief(setup, losses) }), -1, -1, 0);
  const isEnough = (): boolean => keys.length >= states || found;
  for (; level <= depth && !isEnough(); level++) {
    const here = levels[level] as number[];
    for (let place = 0; place < here.length && !isEnough(); place++) {
      const at = here[place] as number;
      if (expanded[at] === true) continue;
      expanded[at] = true;
      expand(at);
    }
  }
  const complete = !isEnough();
  if (complete) checkEndless();
  return {
    states: keys.length,
    steps,
    depth: level - 1,
    complete,
    seconds: (performance.now() - startedAt) / 1_000,
    ends,
    wrongs: [...wrongs.values()],
    mind,
  };

  /** From every state what is promised leads to an end, or to a runner that serves. */
  function checkEndless(): void {
    const fine = new Uint8Array(keys.length);
    keys.forEach((key, index) => {
      const { at, pod } = decode(key);
      if (
        at === 'over' ||
        at === 'replacing' ||
        (at === 'serving' && pod === 'running') ||
        leadsOn.has(index)
      )
        fine[index] = 1;
    });
    // Backwards is the way of most edges: a few rounds do.
    for (let changed = true; changed;) {
      changed = false;
      for (let edge = promisedFrom.length - 1; edge >= 0; edge--) {
        const from = promisedFrom[edge] as number;
        if (fine[from] === 0 && fine[promisedTo[edge] as number] === 1) {
          fine[from] = 1;
          changed = true;
        }
      }
    }
    keys.forEach((key, index) => {
      if (fine[index] === 0)
        wrong('nothing that is promised leads on from here', decode(key), () => storyOf(index));
    });
  }
}
