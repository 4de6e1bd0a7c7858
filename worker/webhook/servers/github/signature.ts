import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Returns whether the signature is GitHub's for this body and one of the secrets. Compares in
 * constant time (https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries).
 * @param body - bytes as received, because different bytes can decode to the same text
 * @param signature - value of the header X-Hub-Signature-256
 */
export function verifySignature(
  body: Buffer,
  signature: string,
  secrets: readonly string[],
): boolean {
  const given = Buffer.from(signature);
  return secrets.some((secret) => {
    const expected = Buffer.from(
      `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    );
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
