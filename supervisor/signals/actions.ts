import type { TimerName } from './events.ts';
import type { ExitStatus } from '../process/exitStatus.ts';
import type { SignalTarget } from './stopPolicy.ts';
import type { StopReason } from '../../core/domain/pod.ts';

/** What is written down about the end: into the marker, the termination message and the cleanup command's environment. */
export interface EndRecord {
  /** The supervisor's exit status, 128+n for a signal. */
  readonly exitCode: number;
  /** The signal that ended the child. */
  readonly signal: NodeJS.Signals | null;
  /** Why it was being stopped; null: it ended by itself, or never started. */
  readonly reason: StopReason | null;
  /** Why it could not be started. */
  readonly error?: string;
}

/** What the lifecycle orders; done elsewhere, in the order given. */
export type SupervisorAction =
  | { readonly kind: 'log'; readonly level: 'error' | 'info'; readonly msg: string }
  | { readonly kind: 'spawn' }
  | { readonly kind: 'startTimer'; readonly name: TimerName; readonly ms: number }
  /** Forgets every timer that runs, but for those named. */
  | { readonly kind: 'stopTimers'; readonly except: readonly TimerName[] }
  /** Writes the reason where the command can read it. */
  | { readonly kind: 'tellReason'; readonly reason: StopReason }
  /**
   * A stop's signal, to the command's whole process group or to the command alone; after a reason told before has been written. `earlier`: to
   * the command, and to what of its group was there at the stop's first signal.
   */
  | {
      readonly kind: 'sendStop';
      readonly signal: NodeJS.Signals;
      readonly to: SignalTarget | 'earlier';
    }
  /** To the command alone: no stop. */
  | { readonly kind: 'signalChild'; readonly signal: NodeJS.Signals }
  /** Ends in `groupEmpty`. */
  | { readonly kind: 'awaitGroup' }
  /** Kills every process of the command, in whatever session; ends in `swept`. */
  | { readonly kind: 'sweep' }
  /** Ends in `recorded`. */
  | { readonly kind: 'record'; readonly verdict: EndRecord }
  /** Ends in `cleanupEnded`. */
  | { readonly kind: 'cleanup'; readonly verdict: EndRecord }
  | { readonly kind: 'exit'; readonly status: ExitStatus }
  /** The budget is over: leave, whatever still hangs. `unrecorded`: the verdict that could not be written yet. */
  | { readonly kind: 'abandon'; readonly status: ExitStatus; readonly unrecorded?: EndRecord };
