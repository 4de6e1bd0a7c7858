import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Keeps the connections of a server to a number. One that is too many costs the one whose client has kept us waiting longest, not the one that comes
 * (as Node's own `maxConnections` would): who wants to keep others out opens connections and does little with them.
 */
export class ConnectionLimit {
  /** Connections that wait for their client: for a request, or for the rest of one. The longest first. */
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

  /** Connections that are open now. */
  get open(): number {
    return this.#open;
  }

  /**
   * Closes every connection that waits for its client, and the others once they are answered. Node
   * stops checking its timeouts when the server closes.
   */
  end(): void {
    this.#ending = true;
    while (this.#waiting.size > 0) this.#closeLongest();
  }

  #closeLongest(): void {
    const [longest] = this.#waiting;
    if (longest === undefined) return;
    this.#waiting.delete(longest); // "close" comes later
    longest.destroy();
  }
}
