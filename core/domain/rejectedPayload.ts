/**
 * Beginning of the text that takes the place of a payload which a Worker did not accept
 * (worker/codec/encryptionCodec.ts). Handlers that take a text, or take a default for what they
 * cannot read, check for it.
 */
export const REJECTED_PAYLOAD = 'holdfast: rejected payload: ';

/** Whether a Worker put this in the place of a payload that it did not accept. */
export function isRejectedPayload(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(REJECTED_PAYLOAD);
}
