import { setImmediate as turn } from 'node:timers/promises';
import type { Output } from './output.ts';
import { withTimeout } from '../process/withTimeout.ts';

/**
 * Time without output after which all output of an ended process counts as read (ms). What the
 * process wrote is available immediately.
 */
const IDLE_TIMEOUT_MS = 100;

/**
 * Resolves when all output of an ended command has been forwarded: at the end of its output, or at
 * the first pause, if a process that cannot be killed or found keeps the output open.
 * @param passing - resolves at the end of the output
 * @param output - destination of the output; a slow reader does not count as a pause
 */
export async function outputDrained(passing: Promise<unknown>, output: Output): Promise<void> {
  for (;;) {
    const { bytesAccepted } = output;
    if (await withTimeout(IDLE_TIMEOUT_MS, passing)) return;
    await turn(); // On a busy machine the timeout may expire before available output has been read.
    if (output.bytesAccepted === bytesAccepted && !output.isWriting) return;
  }
}
