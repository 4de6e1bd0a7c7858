import { once } from 'node:events';
import { createServer, connect, type Socket } from 'node:net';
import { join } from 'node:path';

/** Longest path of a Unix socket in bytes: `sun_path` has 108, with a zero at its end. */
const MAX_PATH = 107;

/** Both ends of one stream for everything that a command prints. */
export interface OutputSocket {
  /** End for the command, as its standard output and its standard error. Close ours once it has started. */
  readonly forCommand: Socket;
  readonly reader: Socket;
}

/**
 * Opens a stream that a command gets as both of its outputs, so that what it prints is read in the
 * order in which it was printed. Node makes pipes for one descriptor each, hence a Unix socket,
 * whose name is gone before the command starts.
 * @param folder - a folder of ours
 * @throws Error if the folder takes no socket
 */
export async function openOutputSocket(folder: string): Promise<OutputSocket> {
  const path = join(folder, 'output');
  if (Buffer.byteLength(path) > MAX_PATH)
    throw new Error(`${path} is too long for the name of a socket`);
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(path);
    await once(server, 'listening');
    const forCommand = connect(path);
    const [[reader]] = await Promise.all([
      once(server, 'connection') as Promise<[Socket]>,
      once(forCommand, 'connect'),
    ]);
    return { forCommand, reader };
  } finally {
    // This removes the name, too.
    server.close();
  }
}
