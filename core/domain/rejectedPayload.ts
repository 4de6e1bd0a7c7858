/**
 * Prefix of the text that replaces a payload that a Worker rejected
 * (worker/codec/encryptionCodec.ts). Handlers that accept a text, or that use a default for values
 * that they cannot parse, check for it.
 */
export const REJECTED_PAYLOAD = 'holdfast: rejected payload: ';

/** Whether a Worker replaced a rejected payload by this value. */
export function isRejectedPayload(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(REJECTED_PAYLOAD);
}
