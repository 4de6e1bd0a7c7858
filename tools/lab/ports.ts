import { createServer } from 'node:net';
import { readFile } from 'node:fs/promises';

/**
 * Returns a free TCP port on 127.0.0.1 that remains free while its owner is down for a while. Port
 * 0 is not used: the kernel then takes a port from the range for outgoing connections. A client
 * that retries a stopped server could then get that server's port, and even connect to itself.
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
