import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';

export type ApiRequestKind = 'list' | 'watch' | 'deletion' | 'other';

/** What the proxy does with a request instead of passing it on unchanged. */
export type Fault =
  /** Responds without the server. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly body: string;
      readonly headers?: Record<string, string>;
    }
  /**
   * Passes the request on and starts the response, which then stops until the client disconnects.
   */
  | { readonly kind: 'silence' }
  /** Passes the request on, and cuts the connection after this many bytes of the response body. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Passes the request on with these query parameters. */
  | { readonly kind: 'rewrite'; readonly query: Record<string, string> };

/** A request that is pending until the test releases it. */
export interface HeldRequest {
  /**
   * Passes the request on, even if its client has disconnected.
   * @returns the status of the response
   */
  arrive(): Promise<number>;
}

/** A plain HTTP proxy before an API server, with faults that the test sets. */
export interface ApiProxy {
  /** Kubeconfig of the server, through the proxy. */
  readonly kubeConfig: KubeConfig;
  /** Requests seen, oldest first. */
  readonly seen: readonly {
    readonly kind: ApiRequestKind;
    readonly method: string;
    readonly url: URL;
  }[];
  /** Connections accepted so far. */
  connections(): number;
  /** Sets the faults of the next requests of a kind, in this order. */
  script(kind: ApiRequestKind, ...faults: Fault[]): void;
  /**
   * Holds back the first matching request, and no other. Resolves when it arrives. Its client gets
   * no response.
   */
  hold(
    matches: (request: { readonly method: string; readonly url: URL }) => boolean,
  ): Promise<HeldRequest>;
  /** Cuts all connections. */
  cutAll(): void;
  /** While true every request is cut before its response, as by a server that is down. */
  down: boolean;
  close(): Promise<void>;
}

export async function startApiProxy(target: KubeConfig): Promise<ApiProxy> {
  const cluster = target.getCurrentCluster()!;
  const upstream: RequestOptions = {};
  await target.applyToHTTPSOptions(upstream);
  const scripts: Record<ApiRequestKind, Fault[]> = { list: [], watch: [], deletion: [], other: [] };
  const seen: { kind: ApiRequestKind; method: string; url: URL }[] = [];
  const sockets = new Set<Socket>();
  const holds = new Set<{
    matches: Parameters<ApiProxy['hold']>[0];
    resolve: (held: HeldRequest) => void;
  }>();
  let connections = 0;
  const state = { down: false };

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', cluster.server);
    const kind = kindOf(request, url);
    seen.push({ kind, method: request.method ?? '', url });
    if (state.down) {
      request.socket.destroy();
      return;
    }
    const method = request.method ?? '';
    const hold = [...holds].find(({ matches }) => matches({ method, url }));
    if (hold !== undefined) {
      holds.delete(hold);
      void buffer(request).then((body) =>
        hold.resolve({ arrive: async () => await arrive(request, url, body) }),
      );
      return;
    }
    const fault = scripts[kind].shift();
    if (fault?.kind === 'answer') {
      response
        .writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers })
        .end(fault.body);
      return;
    }
    if (fault?.kind === 'rewrite')
      for (const [name, value] of Object.entries(fault.query)) url.searchParams.set(name, value);
    forward(request, response, url, fault);
  }

  function forward(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    fault: Fault | undefined,
  ): void {
    const headers = {
      ...request.headers,
      ...(upstream.headers as Record<string, string>),
      host: url.host,
    };
    const onward = httpsRequest(
      url,
      { method: request.method, headers, ca: upstream.ca, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        if (fault?.kind === 'silence') return;
        let sent = 0;
        answer.on('data', (chunk: Buffer) => {
          sent += chunk.length;
          if (fault?.kind === 'cut' && sent > fault.afterBytes) {
            response.write(chunk.subarray(0, chunk.length - (sent - fault.afterBytes)), () =>
              request.socket.destroy(),
            );
          } else response.write(chunk);
        });
        answer.on('end', () => response.end());
        answer.on('error', () => request.socket.destroy());
      },
    );
    onward.on('error', () => request.socket.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  }

  async function arrive(
    { method, headers }: IncomingMessage,
    url: URL,
    body: Buffer,
  ): Promise<number> {
    const onward = httpsRequest(url, {
      method,
      headers: { ...headers, ...(upstream.headers as Record<string, string>), host: url.host },
      ca: upstream.ca,
      agent: false,
    });
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode ?? 0;
  }

  const server = createServer(handle);
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'proxy', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'nobody' },
  );
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    kubeConfig,
    seen,
    connections: () => connections,
    script: (kind, ...faults) => scripts[kind].push(...faults),
    hold: async (matches) =>
      await new Promise((resolve) => {
        holds.add({ matches, resolve });
      }),
    cutAll,
    get down() {
      return state.down;
    },
    set down(value) {
      state.down = value;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cutAll();
      }),
  };
}

function kindOf(request: IncomingMessage, url: URL): ApiRequestKind {
  if (request.method === 'DELETE') return 'deletion';
  if (request.method !== 'GET' || !url.pathname.endsWith('/pods')) return 'other';
  return url.searchParams.get('watch') === 'true' ? 'watch' : 'list';
}
