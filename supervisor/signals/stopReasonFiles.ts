import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import type { Pending } from '../process/pending.ts';
import { parseStopReason } from './stopReason.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import { withTimeout } from '../process/withTimeout.ts';

/** Maximum time that the command's signal waits for the file with the reason (ms). */
const WRITE_TIMEOUT_MS = 500;

/**
 * Files with the stop reason: one that is read from outside, and one that is written for the
 * command, whose environment cannot be changed any more.
 */
export class StopReasonFiles {
  /** Path in HOLDFAST_STOP_REASON_FILE. */
  readonly forChild: string;
  readonly #from: string | undefined;
  readonly #pending: Pending;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(forChild: string, from: string | undefined, pending: Pending) {
    this.forChild = forChild;
    this.#from = from;
    this.#pending = pending;
  }

  /** Returns the reason stated from outside, if any. */
  readStated(): StopReason | undefined {
    if (this.#from === undefined) return undefined;
    try {
      return parseStopReason(readFileSync(this.#from, 'utf8'));
    } catch {
      return undefined; // The file is missing or cannot be read, so no reason was stated.
    }
  }

  writeForChild(reason: StopReason, failed: (error: unknown) => void): void {
    const write = async (): Promise<void> => {
      await writeFile(`${this.forChild}.tmp`, `${reason}\n`);
      await rename(`${this.forChild}.tmp`, this.forChild);
    };
    // Write sequentially: a drain that is cut short writes twice, through the same temporary file.
    this.#lastWrite = this.#lastWrite.then(() => this.#pending.track(write())).catch(failed);
  }

  /** Resolves when the last reason has been written, or the write takes too long. */
  async written(): Promise<void> {
    await withTimeout(WRITE_TIMEOUT_MS, this.#lastWrite);
  }
}
