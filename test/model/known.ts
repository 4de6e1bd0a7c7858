/** What the exploration finds and is known: what would have to change, and why it has not. An entry that is not found any more is to be taken out. */
import type { Wrong } from './explore.ts';

interface Known {
  /** Part of what is said of it. */
  readonly what: RegExp;
  readonly setup: RegExp;
  readonly why: string;
}

export const KNOWN: readonly Known[] = [
  {
    what: /^a pod was asked to go under a job, and nobody had asked for a stop$|its job was lost in the drain$/,
    setup: /^static|command/,
    why: 'a container that has not started when the pod is looked at may have before the deletion reaches the API server: only a deletion on the condition that the pod has not changed could tell',
  },
  { what: /^a job was stopped by a deadline that was not its own$/, setup: /^static/, why: 'a late "in progress" of a job that is over sets the deadline' },
  { what: /succeeded is wrong: no job was done$/, setup: /^ephemeral/, why: 'exit code 0 and an absent registration pass for a job' },
];

export function isKnown({ setup, what }: Pick<Wrong, 'setup' | 'what'>): boolean {
  return KNOWN.some((known) => known.setup.test(setup) && known.what.test(what));
}
