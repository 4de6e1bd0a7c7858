import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** Answers now: 200 or 503. */
export interface ProbeAnswers {
  /** The command is up; for a CI runner: registered and listening. */
  startup(): boolean;
  /** No job is running. */
  ready(): boolean;
}

/** Connections held at once. One more pushes the oldest out: the kubelet's is the newest, and gets its answer in a millisecond. */
const MOST_CONNECTIONS = 32;
const REQUEST_MS = 2000;

/**
 * `/startup`, `/ready` and `/live` for the kubelet. In the same event loop as the signals on purpose: if `/live` answers,
 * the supervisor works.
 * @throws Error EADDRINUSE and the like
 */
export async function serveProbes(answers: ProbeAnswers, at: { port: number; host?: string }): Promise<{ server: Server; port: number }> {
  const checks: Readonly<Record<string, () => boolean>> = { '/startup': () => answers.startup(), '/ready': () => answers.ready(), '/live': () => true };
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, connectionsCheckingInterval: REQUEST_MS, maxHeaderSize: 4096 }, (request, response) => {
    const check = checks[(request.url ?? '').split('?')[0] ?? ''];
    const status = check === undefined ? 404 : check() ? 200 : 503;
    response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(status === 200 ? 'ok\n' : 'no\n');
    request.resume();
  });
  server.timeout = REQUEST_MS;
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    const [oldest] = open;
    if (open.size > MOST_CONNECTIONS) oldest?.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, resolve);
  });
  server.on('error', () => undefined); // a connection that could not be accepted (no descriptors left) is the kubelet's to repeat
  return { server, port: (server.address() as AddressInfo).port };
}
