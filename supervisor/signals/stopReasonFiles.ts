import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import type { Pending } from '../process/pending.ts';
import { parseStopReason } from './stopReason.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import { withTimeout } from '../process/withTimeout.ts';

/** How long the command's signal waits for the file that tells it why, in ms. */
const TELL_MS = 500;

/** Both ways of the reason: read from whoever stops us, written for the command, whose environment cannot be changed any more. */
export class StopReasonFiles {
  /** What HOLDFAST_STOP_REASON_FILE names. */
  readonly forChild: string;
  readonly #from: string | undefined;
  readonly #pending: Pending;
  #told: Promise<unknown> = Promise.resolve();

  constructor(forChild: string, from: string | undefined, pending: Pending) {
    this.forChild = forChild;
    this.#from = from;
    this.#pending = pending;
  }

  /** What somebody outside has stated, if anything. */
  readStated(): StopReason | undefined {
    if (this.#from === undefined) return undefined;
    try {
      return parseStopReason(readFileSync(this.#from, 'utf8'));
    } catch {
      return undefined; // not there, not readable: nobody has said anything
    }
  }

  writeForChild(reason: StopReason, failed: (error: unknown) => void): void {
    const write = async (): Promise<void> => {
      await writeFile(`${this.forChild}.tmp`, `${reason}\n`);
      await rename(`${this.forChild}.tmp`, this.forChild);
    };
    // One after the other: a drain that is cut short tells twice, through the same temporary file.
    this.#told = this.#told.then(() => this.#pending.track(write())).catch(failed);
  }

  /** When the reason told last is there to be read, or it takes too long. */
  async written(): Promise<void> {
    await withTimeout(TELL_MS, this.#told);
  }
}
