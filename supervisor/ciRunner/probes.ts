/**
 * PROBES THAT HOLD THEIR ANSWER BACK: `/startup`, `/ready` and `/live` for the kubelet, which asks once a second at most.
 *
 * What: asked with `?wait=900ms`, an answer that the asker has had already is held back for so long, or until it is another one. Without
 * `wait`, and where it is news, it is given at once.
 *
 * Why: the kubelet hears of a job's start, or of its end, when it happens and not up to a second later; whatever waits for the pod to be
 * online, or for its runner to be idle again, is sooner by as much, and no request is made that would not be made anyway.
 *
 * What holds if it fails: a probe is answered in any case. An answer that was not held back, or was held back for too long, is still true
 * when it is given, and the next probe asks again: news is late by a second, as from any other probe. At the end every answer is given
 * ({@link Probes.release}): a connection that breaks off would be a "no".
 *
 * In the same event loop as the signals on purpose: if `/live` answers, the supervisor works. Not by node:http, which would double the
 * supervisor's start-up time and cost 15 MB in every pod.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { parseDuration } from '../settings/duration.ts';

/** Current answers of the probes: true is 200, false is 503. */
export interface ProbeResults {
  /** The command is up; for a CI runner: registered and listening. */
  startup(): boolean;
  /** No job is running. */
  ready(): boolean;
}

/** Running probe server of the supervisor. */
export interface Probes {
  /** Port that the server listens on. */
  readonly port: number;
  /** Rechecks the delayed answers. Call it after any state change. */
  changed(): void;
  /**
   * Sends all delayed answers. Call it at the end: the kubelet counts a broken connection as a
   * failed probe.
   */
  release(): void;
}

/** One path: its answer, and what the last one who would have waited for news was told. */
interface ProbeCheck {
  readonly answer: () => boolean;
  told?: boolean;
}

/** An answer that is held back until it is news. */
interface PendingProbe {
  /** It may be news now. */
  requestRecheck(): void;
  /** Gives the answer as it is. */
  release(): void;
}

/** Connections open at once. One more pushes the oldest out: the kubelet's is the newest, and has its answer (held back or not) by then. */
const MAX_CONNECTIONS = 32;
/** How long a connection may last, in ms. */
const CONNECTION_MS = 3000;
/** How long an answer may be held back at most, in ms; well below {@link CONNECTION_MS}. */
const MAX_WAIT_MS = 1500;
const MAX_REQUEST = 4096;

/** Serves the probes until the process ends. @throws Error EADDRINUSE and the like */
export async function serveProbes(
  answers: ProbeResults,
  at: { port: number; host?: string },
): Promise<Probes> {
  const checks: Readonly<Record<string, ProbeCheck>> = {
    '/startup': { answer: () => answers.startup(), told: false },
    '/ready': { answer: () => answers.ready() },
    '/live': { answer: () => true },
  };
  const open = new Set<Socket>();
  const held = new Map<Socket, PendingProbe>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    const [oldest] = open;
    if (oldest !== undefined && open.size > MAX_CONNECTIONS) {
      open.delete(oldest);
      if (held.has(oldest)) held.get(oldest)?.release();
      else oldest.destroy();
    }
    const timer = setTimeout(() => socket.destroy(), CONNECTION_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      open.delete(socket);
    });
    socket.on('error', () => socket.destroy()); // a client that went away: there is nobody to answer
    socket.once('end', () => socket.end());
    readHead(socket, (head) => answer(socket, head, checks, held));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, resolve);
  });
  server.unref(); // what it supervises keeps the process running, not who asks for it
  server.on('error', () => undefined); // a connection that could not be accepted (no descriptors left) is the kubelet's to repeat
  return {
    port: (server.address() as AddressInfo).port,
    changed: () => {
      for (const each of held.values()) each.requestRecheck();
    },
    release: () => {
      for (const each of held.values()) each.release();
    },
  };
}

function readHead(socket: Socket, then: (head: string) => void): void {
  let head = '';
  const read = (bytes: Buffer): void => {
    head += bytes.toString('latin1');
    if (head.length > MAX_REQUEST) return void socket.destroy();
    // The whole head: closing with something unread would reset the connection before the answer is through.
    if (!/\r?\n\r?\n/.test(head)) return;
    socket.off('data', read).resume();
    then(head);
  };
  socket.on('data', read);
}

function answer(
  socket: Socket,
  head: string,
  checks: Readonly<Record<string, ProbeCheck>>,
  held: Map<Socket, PendingProbe>,
): void {
  const [method = '', target = ''] = head.split(/\s/, 2);
  const [path = '', query = ''] = target.split('?', 2);
  const check = Object.hasOwn(checks, path) ? checks[path] : undefined;
  if (method !== 'GET' && method !== 'HEAD')
    return void socket.end(response('405 Method Not Allowed', ''));
  if (check === undefined) return void socket.end(response('404 Not Found', ''));
  const waitMs = parseWait(query);
  const tell = (): void => {
    const yes = check.answer();
    if (waitMs > 0) check.told = yes;
    const body = method === 'HEAD' ? '' : yes ? 'ok\n' : 'no\n';
    socket.end(response(yes ? '200 OK' : '503 Service Unavailable', body));
  };
  const now = check.answer();
  if (waitMs === 0 || now !== check.told) return tell();
  const release = (): void => {
    held.delete(socket);
    clearTimeout(timer);
    if (socket.writable) tell();
  };
  const timer = setTimeout(release, waitMs);
  held.set(socket, {
    release,
    requestRecheck: () => {
      if (check.answer() !== now) release();
    },
  });
}

/** ms; 0 where none, or no duration, is asked for. */
function parseWait(query: string): number {
  const text = /(?:^|&)wait=([^&]*)/.exec(query)?.[1];
  if (text === undefined) return 0;
  try {
    return Math.min(parseDuration(text), MAX_WAIT_MS);
  } catch {
    return 0; // a probe is to be answered in any case
  }
}

function response(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}
