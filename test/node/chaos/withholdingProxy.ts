import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What tells one request from the others. */
export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

/** A request that its server has carried out, and whose client will never know. */
export interface WithheldAnswer {
  readonly status: number;
  /** Method and path, and for how long it has been withheld: for who reads a failure. */
  about(): string;
  /** The client still waits: it has neither given up nor died. */
  waiting(): boolean;
}

/** A plain HTTP proxy that lets requests through, and keeps the answers of chosen ones to itself. */
export interface WithholdingProxy {
  readonly url: string;
  /** Withholds the answer of the first matching request, and of that one only; resolves once the server has answered. */
  withhold(matches: (request: ProxiedRequest) => boolean): Promise<WithheldAnswer>;
  close(): Promise<void>;
}

export interface ProxyTarget {
  /** Asked for with each request. */
  readonly url: () => string;
  /** What the server asks of its clients: certificates, an authorization header. */
  readonly credentials?: Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'headers'>;
}

interface Hold {
  readonly matches: (request: ProxiedRequest) => boolean;
  readonly resolve: (withheld: WithheldAnswer) => void;
}

/** @param host - the address to listen on, at any free port */
export async function startWithholdingProxy(
  target: ProxyTarget,
  host = '127.0.0.1',
): Promise<WithholdingProxy> {
  const holds = new Set<Hold>();
  const sockets = new Set<Socket>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '' } = request;
    const body = await buffer(request);
    const hold = [...holds].find(({ matches }) =>
      matches({ method, path, body: body.toString('utf8') }),
    );
    if (hold !== undefined) holds.delete(hold);
    const url = new URL(path, target.url());
    const { ca, cert, key, headers: own = {} } = target.credentials ?? {};
    const headers = { ...request.headers, ...(own as Record<string, string>), host: url.host };
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const onward = send(
      url,
      { method, headers, ca, cert, key, agent: false } as RequestOptions,
      (answer) => {
        if (hold === undefined) pass(answer, response);
        else keep(answer, response, hold, `${method} ${path}`);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => {
      // A request whose client dies has still been sent: what is withheld is carried out whatever becomes of the client.
      if (hold === undefined) onward.destroy();
    });
    onward.end(body);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}`,
    withhold: async (matches) =>
      await new Promise((resolve) => {
        holds.add({ matches, resolve });
      }),
    close: async () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function pass(answer: IncomingMessage, response: ServerResponse): void {
  response.writeHead(answer.statusCode ?? 502, answer.headers);
  response.flushHeaders(); // a watch is open before its first event
  answer.on('error', () => response.destroy());
  answer.pipe(response);
}

function keep(
  answer: IncomingMessage,
  response: ServerResponse,
  { resolve }: Hold,
  what: string,
): void {
  answer.on('error', () => response.destroy());
  answer.on('end', () => {
    const since = performance.now();
    resolve({
      status: answer.statusCode ?? 0,
      about: () => `${what}, withheld for ${Math.round(performance.now() - since)} ms`,
      waiting: () => !response.closed,
    });
  });
  answer.resume();
}
