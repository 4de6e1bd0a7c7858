import type { TimerName } from './events.ts';
import type { ExitStatus } from '../process/exitStatus.ts';
import type { SignalTarget } from './stopPolicy.ts';
import type { StopReason } from '../../core/domain/pod.ts';

/**
 * Record of the end, for the marker, the termination message and the cleanup command's environment.
 */
export interface EndRecord {
  /** Exit status of the supervisor, 128+n for a signal. */
  readonly exitCode: number;
  /** Signal that ended the child. */
  readonly signal: NodeJS.Signals | null;
  /** Reason of the stop; null if the command ended by itself or never started. */
  readonly reason: StopReason | null;
  /** Reason why the command could not be started. */
  readonly error?: string;
}

/** Actions of the lifecycle, which are executed elsewhere, in the given order. */
export type SupervisorAction =
  | { readonly kind: 'log'; readonly level: 'error' | 'info'; readonly msg: string }
  | { readonly kind: 'spawn' }
  | { readonly kind: 'startTimer'; readonly name: TimerName; readonly ms: number }
  /** Stops all timers except those named. */
  | { readonly kind: 'stopTimers'; readonly except: readonly TimerName[] }
  /** Writes the reason to the file that the command can read. */
  | { readonly kind: 'tellReason'; readonly reason: StopReason }
  /**
   * Sends the signal of a stop to the command's whole process group or to the command alone, after
   * a reason given before has been written. `earlier`: to the command, and to the members of its
   * group that existed at the stop's first signal.
   */
  | {
      readonly kind: 'sendStop';
      readonly signal: NodeJS.Signals;
      readonly to: SignalTarget | 'earlier';
    }
  /** Sends a signal to the command alone. This is not a stop. */
  | { readonly kind: 'signalChild'; readonly signal: NodeJS.Signals }
  /** Waits for the process group. Followed by the event `groupEmpty`. */
  | { readonly kind: 'awaitGroup' }
  /** Kills every process of the command, in any session. Followed by the event `swept`. */
  | { readonly kind: 'sweep' }
  /** Followed by the event `recorded`. */
  | { readonly kind: 'record'; readonly verdict: EndRecord }
  /** Followed by the event `cleanupEnded`. */
  | { readonly kind: 'cleanup'; readonly verdict: EndRecord }
  | { readonly kind: 'exit'; readonly status: ExitStatus }
  /**
   * The time budget is used up: exit even if an operation hangs. `unrecorded`: verdict that could
   * not be written yet.
   */
  | { readonly kind: 'abandon'; readonly status: ExitStatus; readonly unrecorded?: EndRecord };
