import type { Readable } from 'node:stream';
import type { Output } from './output.ts';

/** Passes what a command writes on, byte for byte and no faster than it is taken. @returns when everybody has closed it, and all is written */
export async function forwardOutput(stream: Readable, output: Output): Promise<void> {
  for await (const bytes of stream as AsyncIterable<Buffer>) await output.write(bytes);
}
