/**
 * DELAYED PROBE RESPONSES: `/startup`, `/ready` and `/live` for the kubelet, which sends at most
 * one request a second.
 *
 * What: with `?wait=900ms`, a response that is the same as the previous one is delayed for this
 * time, or until it changes. Without `wait`, or if the response is different, it is sent
 * immediately.
 *
 * Why: the kubelet learns of the start or end of a job when it happens, and not up to a second
 * later. Everything that waits for the pod to be online, or for its runner to be idle again, is
 * faster by this time, without additional requests.
 *
 * If it fails: every probe is answered in any case. A response that was not delayed, or was delayed
 * for too long, is still true when it is sent, and the next probe follows: a change is reported a
 * second late, as with any other probe. At the end all responses are sent ({@link Probes.release}),
 * because a broken connection would count as a failed probe.
 *
 * The server runs in the same event loop as the signal handling on purpose: if `/live` responds,
 * the supervisor works. It does not use node:http, which would double the supervisor's start-up
 * time and cost 15 MB in every pod.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { parseDuration } from '../settings/duration.ts';

/** Current answers of the probes: true is 200, false is 503. */
export interface ProbeResults {
  /** Whether the command is up; for a CI runner, whether it is registered and listening. */
  startup(): boolean;
  /** Whether no job is running. */
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

/**
 * State of one path: its current result, and the last result sent to a client that accepts a delay.
 */
interface ProbeCheck {
  readonly answer: () => boolean;
  sent?: boolean;
}

/** Response that is delayed until its result changes. */
interface PendingProbe {
  /** Sends the response if the result has changed. */
  requestRecheck(): void;
  /** Sends the response with the current result. */
  release(): void;
}

/** State of the server that a request is answered from. */
interface AnswerContext {
  readonly checks: Readonly<Record<string, ProbeCheck>>;
  readonly held: Map<Socket, PendingProbe>;
  /** Maximum delay of the response (ms). */
  readonly maxWaitMs: number;
}

/**
 * Maximum number of open connections. A further one closes the oldest. The kubelet's connection is
 * the newest, and has its response (delayed or not) by then.
 */
const MAX_CONNECTIONS = 32;
/** Maximum delay of a response (ms). A connection lasts twice as long at most. */
const MAX_WAIT_MS = 1500;
const MAX_REQUEST = 4096;

/**
 * Serves the probes until the process ends.
 *
 * @param maxWaitMs - maximum delay of a response (ms)
 * @throws Error such as EADDRINUSE
 */
export async function serveProbes(
  answers: ProbeResults,
  at: { port: number; host?: string },
  maxWaitMs = MAX_WAIT_MS,
): Promise<Probes> {
  const checks: Readonly<Record<string, ProbeCheck>> = {
    '/startup': { answer: () => answers.startup(), sent: false },
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
    const timer = setTimeout(() => socket.destroy(), 2 * maxWaitMs);
    socket.once('close', () => {
      clearTimeout(timer);
      open.delete(socket);
    });
    // The client closed the connection, so there is no one to respond to.
    socket.on('error', () => socket.destroy());
    socket.once('end', () => socket.end());
    readHead(socket, (head) => answer(socket, head, { checks, held, maxWaitMs }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, resolve);
  });
  server.unref(); // The supervised command keeps the process running, not the probe clients.
  // If a connection could not be accepted (no descriptors left), the kubelet repeats the probe.
  server.on('error', () => undefined);
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
    // Read the whole head: closing the connection with unread data would reset it before the
    // response has been sent.
    if (!/\r?\n\r?\n/.test(head)) return;
    socket.off('data', read).resume();
    then(head);
  };
  socket.on('data', read);
}

function answer(socket: Socket, head: string, { checks, held, maxWaitMs }: AnswerContext): void {
  const [method = '', target = ''] = head.split(/\s/, 2);
  const [path = '', query = ''] = target.split('?', 2);
  const check = Object.hasOwn(checks, path) ? checks[path] : undefined;
  if (method !== 'GET' && method !== 'HEAD')
    return void socket.end(response('405 Method Not Allowed', ''));
  if (check === undefined) return void socket.end(response('404 Not Found', ''));
  const waitMs = Math.min(parseWait(query), maxWaitMs);
  const send = (): void => {
    const yes = check.answer();
    if (waitMs > 0) check.sent = yes;
    const [status, body] = yes ? ['200 OK', 'ok\n'] : ['503 Service Unavailable', 'no\n'];
    socket.end(response(status, method === 'HEAD' ? '' : body));
  };
  const now = check.answer();
  if (waitMs === 0 || now !== check.sent) return send();
  const release = (): void => {
    held.delete(socket);
    clearTimeout(timer);
    if (socket.writable) send();
  };
  const timer = setTimeout(release, waitMs);
  held.set(socket, {
    release,
    requestRecheck: () => {
      if (check.answer() !== now) release();
    },
  });
}

/** Returns the requested delay (ms), or 0 if there is none or it is invalid. */
function parseWait(query: string): number {
  const text = /(?:^|&)wait=([^&]*)/.exec(query)?.[1];
  if (text === undefined) return 0;
  try {
    return parseDuration(text);
  } catch {
    return 0; // A probe must be answered in any case.
  }
}

function response(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}
