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
  /** Preparations are done: the command may start. */
  | { readonly kind: 'ready' }
  /** Preparations or the start failed. */
  | { readonly kind: 'startFailed'; readonly message: string }
  | { readonly kind: 'spawned' }
  /** The reason that somebody outside has written down; looked for twice a second and before every other event. */
  | { readonly kind: 'stated'; readonly reason: StopReason }
  /** `idle`: it is a CI runner, and known to have no job. */
  | { readonly kind: 'stopSignal'; readonly signal: StoppingSignal; readonly idle: boolean }
  /** A signal that is the command's own business (SIGUSR1, SIGUSR2, SIGWINCH). */
  | { readonly kind: 'otherSignal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'timer'; readonly name: TimerName }
  /** A CI runner's job is over. */
  | { readonly kind: 'jobEnded' }
  | { readonly kind: 'childExited'; readonly end: ChildEnd }
  /** After the child's own end: no living process is left in its group. */
  | { readonly kind: 'groupEmpty' }
  /** Whatever was left of the command has been killed. */
  | { readonly kind: 'swept' }
  /** Marker and termination message are written, or cannot be. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'cleanupEnded' };
