import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { WorkerProcess } from './workerProcess.ts';

/** A request at which the worker is killed. */
export interface KillPoint {
  readonly method: string;
  readonly path: RegExp;
  /**
   * `before`: the server does not get the request. `after`: the worker does not get the response.
   */
  readonly when: 'before' | 'after';
}

/**
 * A proxy before a CI server, through which one worker reaches it. It kills the worker at chosen
 * requests, and then another one is started.
 */
export class KillingProxy {
  readonly #target: string;
  readonly #server: Server;
  #start: () => WorkerProcess = () => {
    throw new Error('the proxy has no worker');
  };
  #worker: WorkerProcess | undefined;
  #next: { readonly point: KillPoint; readonly killed: () => void } | undefined;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => void this.#pass(request, response));
  }

  /**
   * @param target - URL of the server
   * @param start - starts a worker that reaches the server by this URL
   */
  static async start(target: string, start: (url: string) => WorkerProcess): Promise<KillingProxy> {
    const proxy = new KillingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.#server.address() as AddressInfo;
    const path = new URL(target).pathname.replace(/\/$/, '');
    proxy.#start = () => start(`http://127.0.0.1:${port}${path}`);
    proxy.#worker = proxy.#start();
    return proxy;
  }

  /** The present worker. */
  get worker(): WorkerProcess {
    if (this.#worker === undefined) throw new Error('the proxy has no worker');
    return this.#worker;
  }

  /** @returns when the worker was killed during such a request, and another one has started */
  async kill(point: KillPoint): Promise<void> {
    await new Promise<void>((killed) => (this.#next = { point, killed }));
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const body = await buffer(request);
    const next = this.#next;
    const isHit = next?.point.method === method && next.point.path.test(url);
    if (isHit) this.#next = undefined;
    if (isHit && next.point.when === 'before') return await this.#kill(next.killed);
    const { host: _host, 'content-length': _length, connection: _connection, ...kept } = headers;
    const answer = await fetch(new URL(url, this.#target), {
      method,
      headers: kept as Record<string, string>,
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    });
    const text = await answer.text();
    if (isHit) return await this.#kill(next.killed);
    const type = answer.headers.get('content-type');
    response.writeHead(answer.status, type === null ? {} : { 'content-type': type }).end(text);
  }

  async #kill(killed: () => void): Promise<void> {
    this.worker.kill('SIGKILL');
    await this.worker.ended;
    this.#worker = this.#start();
    killed();
  }

  async close(): Promise<void> {
    this.worker.kill('SIGKILL');
    await this.worker.ended;
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
