import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { BodyMemoryLimit, BodyRejectedError } from '../../../worker/webhook/bodyMemoryLimit.ts';
import { BODY_LIMIT } from '../../../worker/webhook/webhookResponses.ts';

const KIB = 1_024;

describe('request bodies', () => {
  let budget: BodyMemoryLimit;
  beforeEach(() => {
    budget = new BodyMemoryLimit(64 * KIB);
  });

  interface Body {
    readonly stream: PassThrough;
    /** Its bytes, or the outcome of its rejection. */
    readonly read: Promise<Buffer | string>;
  }
  function begin(): Body {
    const stream = new PassThrough({ highWaterMark: 10 * BODY_LIMIT });
    const read = budget
      .read(stream)
      .catch((error: unknown) =>
        error instanceof BodyRejectedError ? error.answer.outcome : Promise.reject(error),
      );
    return { stream, read };
  }
  const send = async (stream: PassThrough, bytes: Buffer): Promise<void> => {
    stream.write(bytes);
    await new Promise((resolve) => setImmediate(resolve));
  };

  test('a body in chunks is read completely', async () => {
    const { stream, read } = begin();
    const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 256));
    for (let at = 0; at < bytes.length; at += 7) stream.write(bytes.subarray(at, at + 7));
    stream.end();
    expect(await read).toEqual(bytes);
    expect(budget.held).toBe(0);
  });

  test('a body that arrives byte by byte takes at most twice its size', async () => {
    const { stream, read } = begin();
    for (let sent = 0; sent < 10 * KIB; sent++) stream.write(Buffer.from('x'));
    await send(stream, Buffer.from('x'));
    expect(budget.held).toBeLessThanOrEqual(20 * KIB + 2);
    stream.end();
    expect(await read).toHaveLength(10 * KIB + 1);
  });

  test('a body of 1 MiB is read, and a longer one is not, independent of its Content-Length', async () => {
    budget = new BodyMemoryLimit(4 * BODY_LIMIT);
    const [full, over] = [begin(), begin()];
    full.stream.end(Buffer.alloc(BODY_LIMIT));
    over.stream.write(Buffer.alloc(BODY_LIMIT));
    over.stream.write('x');
    expect(await full.read).toHaveLength(BODY_LIMIT);
    expect(await over.read).toBe('too_large');
    expect(budget.held).toBe(0);
  });

  test('when the budget is exhausted, the oldest requests are rejected, and new ones are read', async () => {
    const slow = Array.from({ length: 8 }, begin);
    for (const { stream } of slow) await send(stream, Buffer.alloc(8 * KIB));
    expect(budget.held).toBe(64 * KIB);
    const delivery = begin();
    delivery.stream.end(Buffer.alloc(16 * KIB));
    expect(await delivery.read).toHaveLength(16 * KIB);
    expect(await Promise.all(slow.slice(0, 2).map(async ({ read }) => await read))).toEqual([
      'overloaded',
      'overloaded',
    ]);
    for (const { stream } of slow.slice(2)) stream.end();
    expect(
      (await Promise.all(slow.slice(2).map(async ({ read }) => await read))).map(
        (body) => body.length,
      ),
    ).toEqual(Array.from({ length: 6 }, () => 8 * KIB));
    expect(budget.held).toBe(0);
  });

  test('a body larger than the budget is rejected', async () => {
    const { stream, read } = begin();
    stream.write(Buffer.alloc(65 * KIB));
    expect(await read).toBe('overloaded');
    expect(budget.held).toBe(0);
  });

  test('memory of rejected or copied bodies is released at once, not by the garbage collector', async () => {
    budget = new BodyMemoryLimit(4 * BODY_LIMIT);
    const piece = Buffer.alloc(16 * KIB);
    const before = process.memoryUsage().arrayBuffers;
    for (let bodies = 0; bodies < 100; bodies++) {
      const { stream, read } = begin();
      for (let sent = 0; sent < BODY_LIMIT; sent += piece.length) stream.write(piece);
      await send(stream, Buffer.alloc(0));
      stream.destroy();
      await read;
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * BODY_LIMIT);
  });

  test.each(['hangs up', 'breaks'])('nothing is kept of a sender who %s', async (how) => {
    const { stream, read } = begin();
    await send(stream, Buffer.alloc(KIB));
    if (how === 'hangs up') stream.destroy();
    else stream.destroy(new Error('ECONNRESET'));
    expect(await read).toBe('incomplete');
    expect(budget.held).toBe(0);
  });
});
