/** What Ctrl-C means while attached to a runner. */

/** `drain`: let the job finish. `stop`: end it gracefully. `exit`: leave, whatever the runner does. */
export type Interrupt = { readonly kind: 'ignore' } | { readonly kind: 'drain' } | { readonly kind: 'stop' } | { readonly kind: 'exit' };

/**
 * One press of Ctrl-C may arrive twice: the terminal signals the whole process group, and `npm run` passes on what it got
 * (npm's run-script/lib/signal-manager.js). Two signals closer than this are one press, in ms.
 */
export const SAME_PRESS_MS = 150;

/**
 * The n-th press decides: drain, stop, exit.
 * @param presses - how many counted before
 * @param sinceLastMs - since the last signal that counted; undefined for the first
 */
export function onInterrupt(presses: number, sinceLastMs: number | undefined): Interrupt {
  if (sinceLastMs !== undefined && sinceLastMs < SAME_PRESS_MS) return { kind: 'ignore' };
  if (presses === 0) return { kind: 'drain' };
  return presses === 1 ? { kind: 'stop' } : { kind: 'exit' };
}
