import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A small HTTP proxy: CONNECT for https, forwarding for http, basic authentication if required. */
export class ForwardProxy {
  /** `CONNECT host:port` or `METHOD http://…` of every request let through. */
  readonly passed: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** @param login - required `user:password` */
  constructor(login?: string) {
    const expected =
      login === undefined ? undefined : `Basic ${Buffer.from(login).toString('base64')}`;
    this.#server = createServer((incoming, outgoing) => {
      if (expected !== undefined && incoming.headers['proxy-authorization'] !== expected) {
        outgoing.writeHead(407, { 'proxy-authenticate': 'Basic' }).end();
        return;
      }
      this.passed.push(`${incoming.method} ${incoming.url}`);
      const { 'proxy-authorization': _secret, ...headers } = incoming.headers;
      const onward = request(
        incoming.url ?? '',
        { method: incoming.method ?? 'GET', headers },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        },
      );
      onward.on('error', () => outgoing.writeHead(502).end());
      incoming.pipe(onward);
    });
    this.#server.on('connect', (incoming, client: Socket) => {
      if (expected !== undefined && incoming.headers['proxy-authorization'] !== expected) {
        client.end(
          'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="proxy"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
        );
        return;
      }
      this.passed.push(`CONNECT ${incoming.url}`);
      const [host = '', port = ''] = (incoming.url ?? '').split(':');
      const target = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      for (const socket of [target, client]) {
        this.#sockets.add(socket);
        socket.on('error', () => socket.destroy());
        socket.on(
          'close',
          () => (target.destroy(), client.destroy(), this.#sockets.delete(socket)),
        );
      }
    });
  }

  start(): Promise<this> {
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', () => resolve(this)));
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
