import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Passes requests on to a server, or fails them. */
export class FailingProxy {
  readonly #server: Server;
  #how: 'status' | 'drop' | undefined;

  private constructor(target: string) {
    this.#server = createServer((incoming, response) => {
      if (this.#how === 'drop') return void incoming.socket.destroy();
      if (this.#how === 'status') return void response.writeHead(502).end();
      const { method, headers, url = '' } = incoming;
      const onward = request(new URL(url, target), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      onward.once('error', () => response.destroy());
      incoming.pipe(onward);
    });
  }

  static async start(target: string): Promise<FailingProxy> {
    const proxy = new FailingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Fails every request from now on. */
  fail(how: 'status' | 'drop'): void {
    this.#how = how;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
