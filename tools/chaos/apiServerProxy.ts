import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';

/** User name of the workers at the API server, with all permissions. */
export const WORKER_USER = 'holdfast-worker';
const IDENTITY = { 'impersonate-user': WORKER_USER, 'impersonate-group': 'system:masters' };

/** A request of a worker to the API server, with its body. */
export interface WorkerRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly body: string;
}

/** Options of {@link startApiServerProxy}. */
export interface ApiServerProxyOptions {
  /**
   * Called for each request except watches, before it is forwarded.
   * @returns a function to call with the status of the response, or 0 without a response
   */
  readonly onRequest: (request: WorkerRequest) => (status: number) => void;
}

/** Proxy between the workers and the API server. It observes requests, and delays or cuts them. */
export interface ApiServerProxy {
  /** Text of a kubeconfig for the workers. */
  readonly kubeconfig: string;
  /** Delays of requests that create an object, and of their responses (ms). */
  readonly creations: { requestDelayMs: number; responseDelayMs: number };
  /** Cuts all watches. */
  cutWatches(): void;
  /**
   * Withholds the events of open and new watches.
   * @returns a function that cuts these watches and ends this
   */
  silenceWatches(): () => void;
  /** Cuts all connections. */
  cutAll(): void;
  /**
   * Cuts all connections, and every new one.
   * @returns a function that ends this
   */
  rejectConnections(): () => void;
  close(): Promise<void>;
}

/**
 * Starts a proxy.
 * @param target - address and credentials of the API server
 */
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
  const creations = { requestDelayMs: 0, responseDelayMs: 0 };
  const watchAnswers = new Set<IncomingMessage>();
  let silent = false;
  let isRejecting = false;

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
    const delays = method === 'POST' ? { ...creations } : { requestDelayMs: 0, responseDelayMs: 0 };
    // The request is in transit: it arrives even if the connection of its sender is closed.
    if (delays.requestDelayMs > 0) await delay(delays.requestDelayMs);
    send(request, url, body, response, answered, delays.responseDelayMs, method !== 'GET');
  }

  function send(
    { method, headers, socket }: IncomingMessage,
    url: URL,
    body: Buffer,
    response: ServerResponse,
    answered: (status: number) => void,
    responseDelayMs: number,
    completesAlways = false,
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
        if (responseDelayMs > 0) setTimeout(pass, responseDelayMs);
        else pass();
      },
    );
    onward.on('error', () => {
      answered(0);
      socket.destroy();
    });
    response.on('close', () => {
      if (!completesAlways) onward.destroy();
    });
    onward.end(body);
  }

  const proxy = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  proxy.on('connection', (socket) => {
    if (isRejecting) return void socket.destroy();
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
    rejectConnections: () => {
      isRejecting = true;
      cut(sockets);
      return () => void (isRejecting = false);
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
