/** Meaning of signals while attached to a runner or job. */
import { Option } from 'commander';

/**
 * Effects of SIGINT. `drain`: let the job finish. `stop`: end it gracefully. `exit`: exit
 * immediately; the runner continues.
 */
export type Interrupt =
  | { readonly kind: 'ignore' }
  | { readonly kind: 'drain' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'exit' };

/** Effects of the first SIGTERM: detach from the runner or job, or stop it. */
export const ON_SIGTERM = ['detach', 'stop'] as const;
/** Effect of the first SIGTERM while attached. */
export type OnSigterm = (typeof ON_SIGTERM)[number];

/** Returns the option `--on-sigterm` of a command that attaches. */
export const onSigtermOption = (): Option =>
  new Option(
    '--on-sigterm <action>',
    'Effect of SIGTERM. detach: leave it running; stop: stop it within its grace period and wait (default: detach)',
  ).choices(ON_SIGTERM);

/** Source of SIGINT. */
export interface InterruptSource {
  /**
   * Whether standard input is a terminal, where a person can press Ctrl-C. Otherwise SIGINT is a
   * request from a program, such as a CI step that is cancelled, which sends it once.
   */
  readonly onTerminal: boolean;
  /**
   * Time after a signal in which another one counts as the same press (ms). See {@link debounceMs}.
   */
  readonly debounceMs: number;
}

/**
 * Returns the time in which another signal counts as the same press of Ctrl-C (ms). The terminal
 * signals the whole process group, and `npm run` and `npx`, which are in it, forward the signal
 * (npm's run-script/lib/signal-manager.js), so one press arrives twice. Without them every signal
 * counts.
 */
export function debounceMs(
  env: Readonly<Record<string, string | undefined>>,
  onTerminal: boolean,
): number {
  return onTerminal && env['npm_lifecycle_event'] !== undefined ? 150 : 0;
}

/**
 * Decides what a SIGINT means. On a terminal: drain, stop, exit. Elsewhere: stop, exit.
 * @param presses - SIGINTs that counted before
 * @param sinceLastMs - time since the last one that counted (ms); undefined for the first
 */
export function interruptAction(
  presses: number,
  sinceLastMs: number | undefined,
  source: InterruptSource,
): Interrupt {
  if (sinceLastMs !== undefined && sinceLastMs < source.debounceMs) return { kind: 'ignore' };
  const actions = source.onTerminal ? (['drain', 'stop'] as const) : (['stop'] as const);
  return { kind: actions[presses] ?? 'exit' };
}

/**
 * Decides what a SIGTERM means. The second one always detaches.
 * @param earlier - SIGTERMs before this one
 */
export function sigtermAction(earlier: number, onSigterm: OnSigterm): OnSigterm {
  return earlier === 0 ? onSigterm : 'detach';
}
