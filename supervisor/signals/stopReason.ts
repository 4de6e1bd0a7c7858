import { STOP_REASONS, type StopReason } from '../../core/domain/pod.ts';

/**
 * Parses the file that states the stop reason (for example a downward API volume with the pod's
 * annotation). Returns undefined for an unknown reason, which is then derived from the signal.
 */
export function parseStopReason(text: string): StopReason | undefined {
  const word = text.trim();
  return STOP_REASONS.find((reason) => reason === word);
}
