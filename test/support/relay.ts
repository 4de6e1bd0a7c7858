import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';

/** Relays an address that pods reach to a server on the loopback interface of this machine. */
export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(host: string, port: number) {
    this.#server = createServer((from) => {
      const to = connect(port, host);
      for (const [one, other] of [
        [from, to],
        [to, from],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  static async open(at: string, target: URL): Promise<Relay> {
    const relay = new Relay(target.hostname, Number(target.port));
    relay.#server.listen(0, at);
    await once(relay.#server, 'listening');
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
