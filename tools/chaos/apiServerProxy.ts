import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';

/** Who the workers are to the API server: somebody who may do all. */
export const WORKER_USER = 'holdfast-worker';
const IDENTITY = { 'impersonate-user': WORKER_USER, 'impersonate-group': 'system:masters' };

/** A request of a worker to the API server, with its body. */
export interface WorkerRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly body: string;
}

export interface ApiServerProxyOptions {
  /** Told of each request that is no watch, before it is passed on. @returns what to tell its status to; 0: there was no answer */
  readonly onRequest: (request: WorkerRequest) => (status: number) => void;
}

/** What stands between the workers and the API server: it sees what they ask for, and is late or cuts where a fault says so. */
export interface ApiServerProxy {
  /** A kubeconfig's text. */
  readonly kubeconfig: string;
  /** How much later a creation arrives, and how much later its answer does, in ms. */
  readonly creations: { arriveLaterMs: number; answeredLaterMs: number };
  /** Cuts all watches. */
  cutWatches(): void;
  /** Withholds what watches tell from now on, those that are open and new ones. @returns what ends it: the watches are cut */
  silenceWatches(): () => void;
  /** Cuts all connections. */
  cutAll(): void;
  /** Cuts all connections, and every new one. @returns what ends it */
  goAway(): () => void;
  close(): Promise<void>;
}

/** @param target - the API server, and who we are there */
export async function startApiServerProxy(
  target: KubeConfig,
  { onRequest }: ApiServerProxyOptions,
): Promise<ApiServerProxy> {
  const server = target.getCurrentCluster()?.server ?? '';
  const upstream: RequestOptions = {};
  await target.applyToHTTPSOptions(upstream);
  const agent = new Agent({ keepAlive: true, ca: upstream.ca });
  const sockets = new Set<Socket>();
  const watches = new Set<Socket>();
  const creations = { arriveLaterMs: 0, answeredLaterMs: 0 };
  const watchAnswers = new Set<IncomingMessage>();
  let silent = false;
  let away = false;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', socket } = request;
    const url = new URL(request.url ?? '/', server);
    if (url.searchParams.get('watch') === 'true' || url.searchParams.get('watch') === '1') {
      watches.add(socket);
      response.on('close', () => watches.delete(socket));
      send(request, url, Buffer.alloc(0), response, () => undefined, 0);
      return;
    }
    const body = await buffer(request);
    const answered = onRequest({ method, path: url.pathname, body: body.toString('utf8') });
    const late = method === 'POST' ? { ...creations } : { arriveLaterMs: 0, answeredLaterMs: 0 };
    // It is on its way: it arrives whatever becomes of its sender.
    if (late.arriveLaterMs > 0) await delay(late.arriveLaterMs);
    send(request, url, body, response, answered, late.answeredLaterMs, method !== 'GET');
  }

  function send(
    { method, headers, socket }: IncomingMessage,
    url: URL,
    body: Buffer,
    response: ServerResponse,
    answered: (status: number) => void,
    laterMs: number,
    whateverHappens = false,
  ): void {
    const onward = httpsRequest(
      url,
      {
        method,
        headers: {
          ...headers,
          ...(upstream.headers as Record<string, string>),
          ...IDENTITY,
          host: url.host,
        },
        agent,
      },
      (answer) => {
        const { statusCode: status = 502 } = answer;
        answered(status);
        answer.on('error', () => socket.destroy());
        const pass = (): void => {
          if (response.closed) return void answer.resume();
          response.writeHead(status, answer.headers);
          response.flushHeaders(); // a watch is open before its first event
          answer.pipe(response);
          if (!watches.has(socket)) return;
          watchAnswers.add(answer);
          response.on('close', () => watchAnswers.delete(answer));
          if (silent) answer.unpipe(response);
        };
        if (laterMs > 0) setTimeout(pass, laterMs);
        else pass();
      },
    );
    onward.on('error', () => {
      answered(0);
      socket.destroy();
    });
    response.on('close', () => {
      if (!whateverHappens) onward.destroy();
    });
    onward.end(body);
  }

  const proxy = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  proxy.on('connection', (socket) => {
    if (away) return void socket.destroy();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  const { port } = proxy.address() as AddressInfo;
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'proxy', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'worker' },
  );
  const cut = (which: ReadonlySet<Socket>): void => {
    for (const socket of which) socket.destroy();
  };
  return {
    kubeconfig: config.exportConfig(),
    creations,
    cutWatches: () => cut(watches),
    silenceWatches: () => {
      silent = true;
      for (const answer of watchAnswers) answer.unpipe();
      return () => {
        silent = false;
        cut(watches);
      };
    },
    cutAll: () => cut(sockets),
    goAway: () => {
      away = true;
      cut(sockets);
      return () => void (away = false);
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => {
        proxy.close(() => resolve());
      });
      cut(sockets);
      agent.destroy();
      await closed;
    },
  };
}
