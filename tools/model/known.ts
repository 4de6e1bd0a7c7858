/** What the exploration finds and is known: what would have to change, and why it has not. An entry that is not found any more is to be taken out. */
import type { Wrong } from './explore.ts';

export interface Known {
  /** All that is said of it. */
  readonly what: RegExp;
  readonly setup: RegExp;
  readonly why: string;
}

export const KNOWN: readonly Known[] = [
  {
    what: /^a job that no event had told of is stopped by a deadline that is not its own$/,
    setup: /^static/,
    why: 'two jobs back to back, none of whose events came in time: its pod did not show it idle between them, or does not tell at all, so the second passes for the first',
  },
  {
    what: /^the verdict succeeded is wrong: no job was done$/,
    setup: /^ephemeral, silent$/,
    why: 'without the supervisor nothing tells a runner that ended after its job from one whose registration somebody else has removed: both exit with 0 (removedItself in verdict.ts)',
  },
  {
    what: /^the verdict errored\/deleted_externally is wrong: it was lost while idle$/,
    setup: /^ephemeral, silent$/,
    why: 'the same for one that vanished: its registration is gone, as after a job (row 6 of jobLoss.ts)',
  },
  {
    what: /^a pod was asked to go under a job, and nobody had asked for a stop \(the registration does not exist and the runner has not ended by itself in time\)$/,
    setup: /, silent$/,
    why: "a 204 in a job's first minute, of a runner that nobody saw online and no event told of: it gets two minutes (removalGrace), lest one that never registers is kept for a day",
  },
  {
    what: /^the verdict (succeeded|aborted\/\w+) is wrong: its job was lost in the drain$/,
    setup: /, silent$/,
    why: 'the same 204, and then the pod vanishes: nothing tells it from an idle runner that was drained',
  },
];

export const isOf = ({ what, setup }: Known, wrong: Pick<Wrong, 'setup' | 'what'>): boolean =>
  setup.test(wrong.setup) && what.test(wrong.what);

export function isKnown(wrong: Pick<Wrong, 'setup' | 'what'>): boolean {
  return KNOWN.some((known) => isOf(known, wrong));
}
