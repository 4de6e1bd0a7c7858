import type { StopSignal } from '../../core/domain/stopSignals.ts';

/**
 * Meaning of SIGTERM: let the command finish first, stop it, or stop it so that a later attempt
 * continues from its saved state.
 */
export type OnTerm = 'drain' | 'stop' | 'checkpoint';

/**
 * Recipient of a stop's signals: the command's whole process group, or the command alone, which
 * forwards them itself.
 */
export type SignalTarget = 'group' | 'process';

/**
 * Time limits and policies of one supervised command, on which all decisions of its lifecycle
 * depend. Times are in ms.
 */
export interface StopPolicy {
  /** Maximum run time of the command (ms). Unlimited if absent. */
  readonly timeoutMs?: number;
  /** Time from the stop's first signal to SIGKILL (ms). */
  readonly signalTimeoutMs: number;
  /**
   * Time after the command's end for the cleanup command and the records (ms), in addition to
   * `signalTimeoutMs`.
   */
  readonly cleanupTimeoutMs: number;
  /**
   * With `onTerm: drain`: maximum time that the command may continue after SIGTERM (ms), in
   * addition to the other two.
   */
  readonly drainTimeoutMs: number;
  readonly onTerm: OnTerm;
  /**
   * Signals of a stop, instead of a single one. If empty: SIGINT at the timeout, and a signal from
   * outside as it was received.
   */
  readonly stopSignals: readonly StopSignal[];
  readonly signalTarget: SignalTarget;
  /** Whether a cleanup command runs after the end. */
  readonly cleanup: boolean;
}
