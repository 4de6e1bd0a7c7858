import { open, write } from 'node:fs';
import { promisify } from 'node:util';
import type { Pending } from '../process/pending.ts';

const writeSome = promisify(write);

/** How long to wait when a descriptor that somebody made non-blocking is full, in ms. */
const FULL_MS = 5;

/**
 * Writes to one of our own descriptors, in order and whole, without ever blocking the event loop: Node's own process.stdout writes
 * pipes synchronously, so a reader that stalls would stop signal handling, too.
 */
export class Output {
  readonly #fd: number;
  readonly #pending: Pending;
  #last: Promise<void> = Promise.resolve();
  readonly #onFailure: ((error: Error) => void) | undefined;
  #copy: Output | undefined;
  #given = 0;
  #written = 0;

  /** @param onFailure - called for each write that fails, such as on a full disk */
  constructor(fd: number, pending: Pending, onFailure?: (error: Error) => void) {
    this.#fd = fd;
    this.#pending = pending;
    this.#onFailure = onFailure;
  }

  /** To the end of a file, which is made where there is none. @throws Error when it cannot be opened */
  static async appendingTo(
    path: string,
    pending: Pending,
    onFailure: (error: Error) => void,
  ): Promise<Output> {
    return new Output(await pending.track(promisify(open)(path, 'a', 0o644)), pending, onFailure);
  }

  /** Whatever is written from now on is written there, too. */
  copyTo(other: Output): void {
    this.#copy = other;
  }

  /** @returns when these bytes are written, or nobody reads them any more */
  write(bytes: Uint8Array): Promise<void> {
    this.#given++;
    const copied = this.#copy?.write(bytes);
    this.#last = this.#last
      .then(() => this.#writeAll(bytes))
      .then(() => copied)
      .then(() => void this.#written++);
    return this.#last;
  }

  /** How many times something was given to be written. */
  get bytesAccepted(): number {
    return this.#given;
  }

  /** Something of it is not written yet. */
  get isWriting(): boolean {
    return this.#written < this.#given;
  }

  /** When everything given so far is written. */
  drained(): Promise<void> {
    return this.#last;
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let offset = 0; offset < bytes.length;) {
      try {
        const { bytesWritten } = await this.#pending.track(
          writeSome(this.#fd, bytes, offset, bytes.length - offset),
        );
        offset += bytesWritten;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // The descriptor is shared with our child and whoever started us; any of them may have set O_NONBLOCK.
        // EPIPE, EBADF: there is no reader. ENOSPC, EDQUOT, EIO: the file lacks these bytes.
        if (code !== 'EAGAIN') return this.#onFailure?.(error as Error);
        await new Promise((resolve) => setTimeout(resolve, FULL_MS));
      }
    }
  }
}
