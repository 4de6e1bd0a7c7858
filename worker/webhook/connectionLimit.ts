import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Limits the number of connections of a server. Beyond the limit, it closes the connection whose
 * client has kept the server waiting longest. Node's own `maxConnections` closes the new one, so a
 * client could keep others out with idle connections.
 */
export class ConnectionLimit {
  /**
   * Connections that wait for a request of their client or the rest of one, in the order in which
   * the wait began.
   */
  readonly #waiting = new Set<Socket>();
  #open = 0;
  #ending = false;

  constructor(server: Server, max: number) {
    server.on('connection', (socket) => {
      this.#open++;
      this.#waiting.add(socket);
      socket.once('close', () => {
        this.#open--;
        this.#waiting.delete(socket);
      });
      if (this.#open > max) this.#closeLongest();
    });
    server.on('request', (request, response) => {
      const { socket } = request;
      request.once('end', () => {
        if (!response.writableEnded) this.#waiting.delete(socket);
      });
      response.once('close', () => {
        if (this.#ending) socket.end();
        else if (!socket.destroyed) this.#waiting.add(socket);
      });
    });
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open;
  }

  /**
   * Closes every connection that waits for its client, and each of the others after its response.
   * Node stops checking its timeouts when the server closes.
   */
  end(): void {
    this.#ending = true;
    while (this.#waiting.size > 0) this.#closeLongest();
  }

  #closeLongest(): void {
    const [longest] = this.#waiting;
    if (longest === undefined) return;
    this.#waiting.delete(longest); // its "close" event follows
    longest.destroy();
  }
}
