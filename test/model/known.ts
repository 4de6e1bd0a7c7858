/** What the exploration finds and is known: what would have to change, and why it has not. An entry that is not found any more is to be taken out. */
import type { Wrong } from './explore.ts';

interface Known {
  /** Part of what is said of it. */
  readonly what: RegExp;
  readonly setup: RegExp;
  readonly why: string;
}

export const KNOWN: readonly Known[] = [
  { what: /^a job was stopped by a deadline that was not its own$/, setup: /^static/, why: 'the event "in progress" of job A is the first to arrive, and arrives between A and B: nothing known by then tells that A is over' },
  { what: /succeeded is wrong: no job was done$/, setup: /^ephemeral/, why: 'without the supervisor nothing tells a runner that ended after its job from one whose registration somebody else has removed: both exit with 0 (removedItself in verdict.ts)' },
];

export function isKnown({ setup, what }: Pick<Wrong, 'setup' | 'what'>): boolean {
  return KNOWN.some((known) => known.setup.test(setup) && known.what.test(what));
}
