/** Why a running command is being stopped, as its environment, its marker and its cleanup command see it. */
export const STOP_REASONS = ['timeout', 'cancelled', 'superseded', 'evicted', 'drained'] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/**
 * Reads what somebody outside wrote into the file that states the reason (a downward API volume with the pod's annotation, for
 * one). Anything but a known word counts as nothing: the reason is then derived from the signal.
 */
export function parseStopReason(text: string): StopReason | undefined {
  const word = text.trim();
  return STOP_REASONS.find((reason) => reason === word);
}
