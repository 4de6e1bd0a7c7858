/** What Ctrl-C means while attached to a runner. */

/** `drain`: let the job finish. `stop`: end it gracefully. `exit`: leave, whatever the runner does. */
export type Interrupt =
  | { readonly kind: 'ignore' }
  | { readonly kind: 'drain' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'exit' };

/**
 * How long after a signal another one is still the same press of Ctrl-C, in ms. The terminal signals the whole process group, and
 * `npm run` and `npx`, being in it, pass on what they got (npm's run-script/lib/signal-manager.js): one press arrives twice.
 * Everywhere else each signal counts.
 */
export function debounceMs(
  env: Readonly<Record<string, string | undefined>>,
  onTerminal: boolean,
): number {
  return onTerminal && env['npm_lifecycle_event'] !== undefined ? 150 : 0;
}

/**
 * The n-th press decides: drain, stop, exit.
 * @param presses - how many counted before
 * @param sinceLastMs - since the last signal that counted; undefined for the first
 * @param sameMs - see {@link debounceMs}
 */
export function interruptAction(
  presses: number,
  sinceLastMs: number | undefined,
  sameMs: number,
): Interrupt {
  if (sinceLastMs !== undefined && sinceLastMs < sameMs) return { kind: 'ignore' };
  if (presses === 0) return { kind: 'drain' };
  return presses === 1 ? { kind: 'stop' } : { kind: 'exit' };
}
