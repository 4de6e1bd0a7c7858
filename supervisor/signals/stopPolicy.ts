import type { StopSignal } from '../../core/domain/stopSignals.ts';

/** What SIGTERM means: let the command finish first, stop it, or stop it so that a later attempt goes on from its saved state. */
export type OnTerm = 'drain' | 'stop' | 'checkpoint';

/** Who gets a stop's signals: the command's whole process group, or the command alone, which passes them on itself. */
export type SignalTarget = 'group' | 'process';

/** The budgets and policies of one supervised command: everything its lifecycle decides by. Times in ms. */
export interface StopPolicy {
  /** How long the command may run; absent: for ever. */
  readonly timeoutMs?: number;
  /** From the stop's first signal to SIGKILL. */
  readonly signalTimeoutMs: number;
  /** After the command's end: for the cleanup command and the records. Comes on top of `signalTimeoutMs`. */
  readonly cleanupTimeoutMs: number;
  /** With `onTerm: drain`: how long the command may go on after SIGTERM. Comes on top of the other two. */
  readonly drainTimeoutMs: number;
  readonly onTerm: OnTerm;
  /** What a stop sends, in place of the one signal; empty: SIGINT at the timeout, and an outside signal as it was received. */
  readonly stopSignals: readonly StopSignal[];
  readonly signalTarget: SignalTarget;
  /** A command runs after the end. */
  readonly cleanup: boolean;
}
