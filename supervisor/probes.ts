import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Answers now: 200 or 503. */
export interface ProbeAnswers {
  /** The command is up; for a CI runner: registered and listening. */
  startup(): boolean;
  /** No job is running. */
  ready(): boolean;
}

/** Connections held at once. One more pushes the oldest out: the kubelet's is the newest, and gets its answer in a millisecond. */
const MOST_CONNECTIONS = 32;
/** How long a connection may last, in ms. */
const CONNECTION_MS = 2000;
const LONGEST_REQUEST = 4096;

/**
 * `/startup`, `/ready` and `/live` for the kubelet. In the same event loop as the signals on purpose: if `/live` answers, the
 * supervisor works. Not by node:http, which would double the supervisor's start-up time and cost 15 MB in every pod.
 * @throws Error EADDRINUSE and the like
 */
export async function serveProbes(answers: ProbeAnswers, at: { port: number; host?: string }): Promise<{ server: Server; port: number }> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    const [oldest] = open;
    if (open.size > MOST_CONNECTIONS) oldest?.destroy();
    const timer = setTimeout(() => socket.destroy(), CONNECTION_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      open.delete(socket);
    });
    socket.on('error', () => socket.destroy()); // a client that went away: there is nobody to answer
    socket.once('end', () => socket.end());
    answerOnce(socket, answers);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, resolve);
  });
  server.on('error', () => undefined); // a connection that could not be accepted (no descriptors left) is the kubelet's to repeat
  return { server, port: (server.address() as AddressInfo).port };
}

function answerOnce(socket: Socket, answers: ProbeAnswers): void {
  let request = '';
  const read = (bytes: Buffer): void => {
    request += bytes.toString('latin1');
    if (request.length > LONGEST_REQUEST) return void socket.destroy();
    // The whole head: closing with something unread would reset the connection before the answer is through.
    if (!/\r?\n\r?\n/.test(request)) return;
    socket.off('data', read).resume();
    socket.end(answerTo(request, answers));
  };
  socket.on('data', read);
}

function answerTo(request: string, answers: ProbeAnswers): string {
  const [method = '', target = ''] = request.split(/\s/, 2);
  const checks: Readonly<Record<string, () => boolean>> = { '/startup': () => answers.startup(), '/ready': () => answers.ready(), '/live': () => true };
  const check = Object.entries(checks).find(([path]) => path === target.split('?')[0])?.[1];
  if (method !== 'GET' && method !== 'HEAD') return response('405 Method Not Allowed', '');
  if (check === undefined) return response('404 Not Found', '');
  const yes = check();
  const body = method === 'HEAD' ? '' : yes ? 'ok\n' : 'no\n';
  return response(yes ? '200 OK' : '503 Service Unavailable', body);
}

function response(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}
