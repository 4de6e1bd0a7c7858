/**
 * Violations that the exploration finds and that are accepted, each with the reason. An entry that
 * is no longer found must be removed.
 */
import type { Violation } from './trace.ts';

/** An accepted violation. */
export interface KnownViolation {
  /** Matches the whole message. */
  readonly message: RegExp;
  readonly setup: RegExp;
  readonly why: string;
}

/** All accepted violations. */
export const KNOWN_VIOLATIONS: readonly KnownViolation[] = [
  {
    message: /^a job without an event was stopped by the deadline of another job$/,
    setup: /^static/,
    why: 'Two jobs ran back to back, and no event of either came in time. The pod did not show the runner idle between them, or has no probes, so the workflow takes the second job for the first.',
  },
  {
    message: /^the verdict succeeded is wrong: no job completed$/,
    setup: /^ephemeral, no supervisor$/,
    why: 'Without the supervisor, a runner that ended after its job looks like one whose registration a user has removed: both exit with 0 (removedItself in completion.ts).',
  },
  {
    message: /^the verdict errored\/deleted_externally is wrong: it was lost while idle$/,
    setup: /^ephemeral/,
    why: 'As above, for a runner that vanished, with the supervisor if its pod was deleted before its first probe: its registration is gone, as after a job (row 6 of jobLoss.ts).',
  },
  {
    message:
      /^the pod was deleted while a job ran, without a stop request \(the registration does not exist and the runner has not ended by itself in time\)$/,
    setup: /, no supervisor$/,
    why: "The CI server returned 204 in the job's first minute, for a runner that was never seen online and without an event. It gets two minutes (removalGrace), because one that never registers must not be kept for a day.",
  },
];

/** Whether the entry accepts the violation. */
export const matches = (
  { message, setup }: KnownViolation,
  violation: Pick<Violation, 'setup' | 'message'>,
): boolean => setup.test(violation.setup) && message.test(violation.message);

/** Whether an entry accepts the violation. */
export function isKnown(violation: Pick<Violation, 'setup' | 'message'>): boolean {
  return KNOWN_VIOLATIONS.some((known) => matches(known, violation));
}
