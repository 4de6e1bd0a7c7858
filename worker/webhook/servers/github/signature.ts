import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Whether this is GitHub's signature of these bytes, with one of the secrets. Takes the bytes
 * themselves: several of them can be the same text. Compares in constant time
 * (https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries).
 * @param signature - the header X-Hub-Signature-256
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
