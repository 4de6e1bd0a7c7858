import type { Readable } from 'node:stream';
import type { Output } from './output.ts';

/**
 * Forwards the output of a command, byte for byte and no faster than it is accepted.
 *
 * @returns when all writers have closed the stream and everything is written
 */
export async function forwardOutput(stream: Readable, output: Output): Promise<void> {
  for await (const bytes of stream as AsyncIterable<Buffer>) await output.write(bytes);
}
