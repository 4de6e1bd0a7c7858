import type { ChildEnd } from '../process/exitStatus.ts';
import type { StopReason } from '../../core/domain/pod.ts';

/** Signals from outside that ask the command to end. */
export type StoppingSignal = 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGHUP';

/**
 * Name of a timer of the supervisor. `signal1`, `signal2` and so on are the steps of a stop
 * sequence after its first signal.
 */
export type TimerName =
  'timeout' | 'drain' | 'grace' | 'half' | 'cleanup' | 'deadMan' | `signal${number}`;

/** Events that change the state of the supervisor. */
export type SupervisorEvent =
  /** The preparations are complete, so the command may start. */
  | { readonly kind: 'ready' }
  /** The preparations or the start failed. */
  | { readonly kind: 'startFailed'; readonly message: string }
  | { readonly kind: 'spawned' }
  /** A stop reason stated from outside. It is read twice a second and before every other event. */
  | { readonly kind: 'stated'; readonly reason: StopReason }
  /** `idle`: the command is a CI runner that is known to have no job. */
  | { readonly kind: 'stopSignal'; readonly signal: StoppingSignal; readonly idle: boolean }
  /** A signal that only the command handles (SIGUSR1, SIGUSR2, SIGWINCH). */
  | { readonly kind: 'otherSignal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'timer'; readonly name: TimerName }
  /** The job of a CI runner has ended. */
  | { readonly kind: 'jobEnded' }
  | { readonly kind: 'childExited'; readonly end: ChildEnd }
  /** After the end of the child: no running process is left in its group. */
  | { readonly kind: 'groupEmpty' }
  /** All remaining processes of the command have been killed. */
  | { readonly kind: 'swept' }
  /** Marker and termination message have been written, or cannot be. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'cleanupEnded' };
