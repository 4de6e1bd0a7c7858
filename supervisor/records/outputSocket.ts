import { once } from 'node:events';
import { createServer, connect, type Socket } from 'node:net';
import { join } from 'node:path';

/**
 * Maximum length of the path of a Unix socket (bytes). `sun_path` has 108, including a terminating
 * zero.
 */
const MAX_PATH = 107;

/** Both ends of one stream for everything that a command prints. */
export interface OutputSocket {
  /**
   * End for the command, as its standard output and its standard error. Close the supervisor's copy
   * once the command has started.
   */
  readonly forCommand: Socket;
  readonly reader: Socket;
}

/**
 * Opens a stream that a command receives as both of its outputs, so that its output is read in the
 * order in which it was written. Node creates a separate pipe for each descriptor, so this uses a
 * Unix socket, whose name is removed before the command starts.
 * @param folder - directory of the supervisor
 * @throws Error if no socket can be created in the directory
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
    // This also removes the name.
    server.close();
  }
}
