import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Returns whether this is GitHub's signature of these bytes with one of the secrets. It takes
 * bytes, because different bytes can decode to the same text. Compares in constant time
 * (https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries).
 * @param signature - value of the header X-Hub-Signature-256
 */
export function verifySignature(
  body: Buffer,
  signature: string,
  secrets: readonly string[],
): boolean {
  const given = Buffer.from(signature);
  return secrets.some((secret) => {
    const right = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    return given.length === right.length && timingSafeEqual(given, right);
  });
}
