import { STOP_REASONS, type StopReason } from '../../core/domain/pod.ts';

/**
 * Reads what somebody outside wrote into the file that states the reason (a downward API volume with the pod's annotation, for
 * one). Anything but a known word counts as nothing: the reason is then derived from the signal.
 */
export function parseStopReason(text: string): StopReason | undefined {
  const word = text.trim();
  return STOP_REASONS.find((reason) => reason === word);
}
