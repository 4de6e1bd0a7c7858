/** Bodies on their way in, and the memory that all of them together may take. */
import type { Readable } from 'node:stream';
import {
  BODY_LIMIT,
  INCOMPLETE,
  OVERLOADED,
  TOO_LARGE,
  type WebhookResponse,
} from './webhookResponses.ts';

/** A body that is not read to its end. */
export class BodyRejectedError extends Error {
  override readonly name = 'BodyRefusedError';
  readonly answer: WebhookResponse;

  constructor(answer: WebhookResponse) {
    super(answer.message);
    this.answer = answer;
  }
}

interface Reading {
  /** Bytes. */
  held: number;
  readonly refuse: (error: BodyRejectedError) => void;
}

/** The least that is set aside for a body, in bytes. One that comes in one go takes no more than it has. */
const MIN_BYTES = 1_024;

/**
 * Limits the memory of request bodies. When the budget is used up, the body that has been in
 * transit longest is dropped, not the newest: GitHub sends a body at once, and a client that wants
 * to hold memory sends slowly.
 */
export class BodyMemoryLimit {
  readonly #maxBytes: number;
  /** Bodies in transit, oldest first. */
  readonly #readings = new Set<Reading>();
  #held = 0;

  /** @param maxBytes - of all bodies that are being read */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#held;
  }

  /** @throws BodyRefusedError for a body over {@link BODY_LIMIT}, one that had to go, and one that broke off; the rest of it is thrown away */
  async read(stream: Readable): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const reading: Reading = { held: 0, refuse: reject };
    this.#readings.add(reading);
    // Kept in one piece: of a body that comes byte by byte, the pieces would take a hundred times as much. What is moved or refused is given back at once:
    // garbage that lies outside of its heap V8 lets pile up to several times the budget.
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
      longest.refuse(new BodyRejectedError(OVERLOADED));
    }
  }
}
