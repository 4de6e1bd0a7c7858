/**
 * Whose turn it is: the change sets of a declared job that are under way, at most so many at once, and those that wait, in the order in which they came. A newer
 * version of one that is under way has its turn, and takes the place of the older there; one that waits keeps its place. Pure; plain data, for a continue-as-new.
 */
import type { JobSource } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';

/** The newest version of a change set. */
export interface Turn {
  /** Workflow id of its runs' group. */
  readonly group: string;
  /** The commit; of a schedule the time. */
  readonly version: string;
  /** When it came to be so, by the CI server's clock (ms since the epoch). */
  readonly atMs: number;
  readonly source: JobSource;
  /** When it came, or began; ISO 8601. */
  readonly since: string;
  /** Of one under way: the last version that was handed over. */
  readonly number?: number;
}

export interface Turns {
  readonly running: readonly Turn[];
  readonly waiting: readonly Turn[];
  /** Counts what was handed over. */
  readonly handed: number;
}

export const NO_TURNS: Turns = { running: [], waiting: [], handed: 0 };

/** What is carried over by a continue-as-new has room for so many. */
export const MAX_WAITING = 1_000;

/** A change asks for a run. @returns also why it is left out, if it is */
export function ask(
  turns: Turns,
  turn: Turn,
): { readonly turns: Turns; readonly leftOut?: string } {
  const place = turns.waiting.findIndex(({ group }) => group === turn.group);
  const before = turns.waiting[place];
  if (
    turn.source.event === 'schedule' &&
    (before !== undefined || turns.running.some(({ group }) => group === turn.group))
  )
    return { turns, leftOut: 'the run before it is not over' };
  if (before !== undefined) {
    if (before.atMs > turn.atMs) return { turns, leftOut: 'a newer version waits' };
    return {
      turns: { ...turns, waiting: turns.waiting.with(place, { ...turn, since: before.since }) },
    };
  }
  if (turns.waiting.length >= MAX_WAITING)
    return { turns, leftOut: `${MAX_WAITING} change sets wait already` };
  return { turns: { ...turns, waiting: [...turns.waiting, turn] } };
}

/** What may begin now. @param most - under way at once @param now - ISO 8601 */
export function begin(
  { running, waiting, handed }: Turns,
  most: number,
  now: string,
): { readonly turns: Turns; readonly hand: readonly (Turn & { readonly number: number })[] } {
  const under = new Map(running.map((turn) => [turn.group, turn]));
  const left: Turn[] = [];
  const hand: (Turn & { number: number })[] = [];
  for (const turn of waiting) {
    if (!under.has(turn.group) && under.size >= most) {
      left.push(turn);
      continue;
    }
    const begun = { ...turn, number: handed + hand.length + 1, since: now };
    under.set(turn.group, begun);
    hand.push(begun);
  }
  return {
    turns: { running: [...under.values()], waiting: left, handed: handed + hand.length },
    hand,
  };
}

/** @param number - of the last version that the group had: of a later one it has not spoken. Absent: whatever it had */
export function end(
  turns: Turns,
  group: string,
  number?: number,
): { readonly turns: Turns; readonly ended?: Turn } {
  const ended = turns.running.find(
    (turn) => turn.group === group && (number === undefined || (turn.number ?? 0) <= number),
  );
  return {
    turns:
      ended === undefined
        ? turns
        : { ...turns, running: turns.running.filter((turn) => turn !== ended) },
    ...defined({ ended }),
  };
}
