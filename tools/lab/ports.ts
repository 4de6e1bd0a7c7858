import { createServer } from 'node:net';
import { readFile } from 'node:fs/promises';

/**
 * A free TCP port on 127.0.0.1 that will still be free when its owner was down for a while.
 *
 * Not port 0: what the kernel hands out lies in the range it also takes for outgoing connections. A client that keeps trying to
 * reach a server held down in a test could then be given the server's own port (and even connect to itself).
 */
export async function freePort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(
    () => '49152 65535',
  );
  const [low = 49_152] = range.trim().split(/\s+/).map(Number);
  const top = Math.max(low, 12_000);
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = 10_000 + Math.floor(Math.random() * (top - 10_000));
    if (await canListen(port)) return port;
  }
  throw new Error('no free TCP port found between 10000 and ' + top);
}

export function canListen(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
