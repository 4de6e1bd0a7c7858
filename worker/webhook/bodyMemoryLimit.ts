/** Limits the memory of the bodies of all requests together. */
import type { Readable } from 'node:stream';
import {
  BODY_LIMIT,
  INCOMPLETE,
  OVERLOADED,
  TOO_LARGE,
  type WebhookResponse,
} from './webhookResponses.ts';

/** Error for a body that was not read completely. */
export class BodyRejectedError extends Error {
  override readonly name = 'BodyRejectedError';
  readonly answer: WebhookResponse;

  constructor(answer: WebhookResponse) {
    super(answer.message);
    this.answer = answer;
  }
}

interface Reading {
  /** Size of its buffer (bytes). */
  held: number;
  readonly reject: (error: BodyRejectedError) => void;
}

/** Minimum size of a buffer (bytes). It grows by doubling. */
const MIN_BYTES = 1_024;

/**
 * Limits the memory of request bodies. When the budget is used up, the oldest body in transit is
 * rejected, not the newest: GitHub sends a body at once, and a client that wants to hold memory
 * sends slowly.
 */
export class BodyMemoryLimit {
  readonly #maxBytes: number;
  /** Bodies in transit, oldest first. */
  readonly #readings = new Set<Reading>();
  #held = 0;

  /**
   * Creates the limit.
   * @param maxBytes - maximum size of all buffers together (bytes)
   */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Size of all buffers (bytes). */
  get held(): number {
    return this.#held;
  }

  /**
   * Reads a body. The rest of a rejected body is discarded.
   * @throws BodyRejectedError if the body exceeds {@link BODY_LIMIT}, the budget is used up, or the
   * client disconnects
   */
  async read(stream: Readable): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const reading: Reading = { held: 0, reject: reject };
    this.#readings.add(reading);
    // One buffer per body: the pieces of a body that arrives byte by byte would take a hundred
    // times the memory. Buffers are freed explicitly, because V8 lets garbage outside of its heap
    // grow to several times the budget.
    let kept = new ArrayBuffer(0);
    let length = 0;
    const onData = (piece: Buffer): void => {
      const needed = length + piece.length;
      if (needed > BODY_LIMIT) return reject(new BodyRejectedError(TOO_LARGE));
      if (needed > kept.byteLength) {
        kept = kept.transfer(
          Math.min(BODY_LIMIT, Math.max(MIN_BYTES, 2 * kept.byteLength, needed)),
        );
        this.#hold(reading, kept.byteLength);
      }
      length += piece.copy(Buffer.from(kept), length);
    };
    const onEnd = (): void => resolve(Buffer.from(kept, 0, length));
    const onBreak = (): void => reject(new BodyRejectedError(INCOMPLETE));
    stream.on('data', onData).once('end', onEnd).once('error', onBreak).once('close', onBreak);
    try {
      return await promise;
    } catch (error) {
      kept.transfer(0);
      throw error;
    } finally {
      stream.off('data', onData).off('end', onEnd).off('close', onBreak).resume();
      this.#readings.delete(reading);
      this.#held -= reading.held;
    }
  }

  #hold(reading: Reading, bytes: number): void {
    this.#held += bytes - reading.held;
    reading.held = bytes;
    for (const longest of this.#readings) {
      if (this.#held <= this.#maxBytes) return;
      this.#readings.delete(longest);
      this.#held -= longest.held;
      longest.held = 0;
      longest.reject(new BodyRejectedError(OVERLOADED));
    }
  }
}
