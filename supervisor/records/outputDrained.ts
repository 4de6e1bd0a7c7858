import { setImmediate as turn } from 'node:timers/promises';
import type { Output } from './output.ts';
import { withTimeout } from '../process/withTimeout.ts';

/** What a process that has ended wrote is there to be read: silence for so long says that all of it has been, in ms. */
const IDLE_TIMEOUT_MS = 100;

/**
 * Resolves when everything that an ended command has written is passed on: at the end of its output; or at the first silence, if somebody
 * who cannot be killed, or cannot be found, holds that output open.
 * @param passing - resolves at the end of the output
 * @param output - where it is passed on to; a reader that is slow is no silence
 */
export async function outputDrained(passing: Promise<unknown>, output: Output): Promise<void> {
  for (;;) {
    const { bytesAccepted } = output;
    if (await withTimeout(IDLE_TIMEOUT_MS, passing)) return;
    await turn(); // on a busy machine the time may be over before anybody has looked at what there is to read
    if (output.bytesAccepted === bytesAccepted && !output.isWriting) return;
  }
}
