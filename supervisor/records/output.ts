import { open, write } from 'node:fs';
import { promisify } from 'node:util';
import type { Pending } from '../process/pending.ts';

const writeSome = promisify(write);

/**
 * Time to wait when a non-blocking descriptor is full (ms). Another process may have made it
 * non-blocking.
 */
const FULL_MS = 5;

/**
 * Writes to one of the supervisor's own descriptors, in order and completely, without ever blocking
 * the event loop. Node's own process.stdout writes to pipes synchronously, so a reader that stalls
 * would also stop signal handling.
 */
export class Output {
  readonly #fd: number;
  readonly #pending: Pending;
  #last: Promise<void> = Promise.resolve();
  readonly #onFailure: ((error: Error) => void) | undefined;
  #copy: Output | undefined;
  #given = 0;
  #written = 0;

  /** @param onFailure - called for each write that fails, for example on a full disk */
  constructor(fd: number, pending: Pending, onFailure?: (error: Error) => void) {
    this.#fd = fd;
    this.#pending = pending;
    this.#onFailure = onFailure;
  }

  /**
   * Opens an output that appends to a file, which is created if it does not exist.
   *
   * @throws Error if it cannot be opened
   */
  static async appendingTo(
    path: string,
    pending: Pending,
    onFailure: (error: Error) => void,
  ): Promise<Output> {
    return new Output(await pending.track(promisify(open)(path, 'a', 0o644)), pending, onFailure);
  }

  /** Copies everything written from now on to another output. */
  copyTo(other: Output): void {
    this.#copy = other;
  }

  /**
   * Writes bytes.
   *
   * @returns when these bytes are written, or no reader is left
   */
  write(bytes: Uint8Array): Promise<void> {
    this.#given++;
    const copied = this.#copy?.write(bytes);
    this.#last = this.#last
      .then(() => this.#writeAll(bytes))
      .then(() => copied)
      .then(() => void this.#written++);
    return this.#last;
  }

  /** Number of calls of `write`. */
  get bytesAccepted(): number {
    return this.#given;
  }

  /** Whether some of the accepted bytes are not written yet. */
  get isWriting(): boolean {
    return this.#written < this.#given;
  }

  /** Resolves when everything accepted so far is written. */
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
        // The descriptor is shared with the child and the parent process, and any of them may have
        // set O_NONBLOCK. EPIPE, EBADF: there is no reader. ENOSPC, EDQUOT, EIO: the file lacks
        // these bytes.
        if (code !== 'EAGAIN') return this.#onFailure?.(error as Error);
        await new Promise((resolve) => setTimeout(resolve, FULL_MS));
      }
    }
  }
}
