import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../tools/lab/ports.ts';

/**
 * A TCP proxy between clients and a server. When it is shut, nothing listens there, as if the
 * server were down.
 */
export class TcpGate {
  readonly host: string;
  readonly port: number;
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  /** Number of bytes that clients may still send. */
  #allowance = Number.POSITIVE_INFINITY;

  private constructor(target: string, host: string, port: number) {
    this.#target = new URL(target);
    this.host = host;
    this.port = port;
  }

  /**
   * @param target - base URL of the server
   * @param host - address to listen on
   * @returns a gate that is shut
   */
  static async to(target: string, host = '127.0.0.1'): Promise<TcpGate> {
    return new TcpGate(target, host, await freePort());
  }

  get url(): string {
    return `${this.#target.protocol}//${this.host}:${this.port}`;
  }

  /** Holds back what clients send in all after this number of bytes: the server never gets it. */
  holdAfter(bytes: number): void {
    this.#allowance = bytes;
  }

  async open(): Promise<void> {
    const server = createServer((client) => {
      const onward = connect(Number(this.#target.port), this.#target.hostname);
      for (const [one, other] of [
        [client, onward],
        [onward, client],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => this.#sockets.delete(one));
        one.pipe(other);
      }
      client.on('data', (bytes: Buffer) => {
        this.#allowance -= bytes.length;
        if (this.#allowance < 0) client.unpipe(onward).pause();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.host, resolve);
    });
    this.#server = server;
  }

  async shut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
