import { createHmac } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { verifySignature } from '../../../worker/webhook/servers/github/signature.ts';

const sign = (secret: string, body: Buffer): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

// https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
test("GitHub's own example", () => {
  expect(
    verifySignature(
      Buffer.from('Hello, World!'),
      'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      ["It's a Secret to Everybody"],
    ),
  ).toBe(true);
});

test('each of the secrets is accepted, and no other', () => {
  const body = Buffer.from('{}');
  expect(
    ['new', 'old', 'other'].map((secret) =>
      verifySignature(body, sign(secret, body), ['new', 'old']),
    ),
  ).toEqual([true, true, false]);
  expect(verifySignature(body, sign('new', body).slice(0, -1), ['new'])).toBe(false);
  expect(verifySignature(body, sign('new', body), [])).toBe(false);
});

test('it covers the bytes: other bytes that decode to the same text are rejected', () => {
  const [signed, other] = [Buffer.from('"\uFFFD"'), Buffer.from([0x22, 0xff, 0x22])];
  expect(other.toString('utf8')).toBe(signed.toString('utf8'));
  expect(verifySignature(other, sign('secret', signed), ['secret'])).toBe(false);
  expect(verifySignature(other, sign('secret', other), ['secret'])).toBe(true);
});
