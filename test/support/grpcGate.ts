import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A call whose response is held back after the server has executed it. */
export interface HeldCall {
  /** Releases the response. */
  release(): void;
}

/**
 * A proxy between a gRPC client and its server, without TLS. It holds chosen responses back and
 * rejects chosen methods.
 */
export class GrpcGate {
  readonly #server: Http2Server = createServer();
  readonly #upstream: ClientHttp2Session;
  readonly #holds = new Map<string, (call: HeldCall) => void>();
  readonly #refused = new Set<string>();

  private constructor(target: string) {
    this.#upstream = connect(`http://${target}`);
    this.#upstream.on('error', () => this.#server.close());
    this.#server.on('stream', (stream, headers) => this.#pass(stream, headers));
  }

  /** @param target - host and port of the server */
  static async open(target: string): Promise<GrpcGate> {
    const gate = new GrpcGate(target);
    await new Promise<void>((resolve) => gate.#server.listen(0, '127.0.0.1', resolve));
    return gate;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds the response to the next call of this method back. Resolves when there is one. */
  async held(method: string): Promise<HeldCall> {
    return await new Promise((resolve) => this.#holds.set(method, resolve));
  }

  /** Rejects calls of these methods with UNAVAILABLE until {@link restore}. */
  refuse(...methods: readonly string[]): void {
    for (const method of methods) this.#refused.add(method);
  }

  restore(): void {
    this.#refused.clear();
  }

  close(): void {
    this.#upstream.destroy();
    this.#server.close();
  }

  #pass(
    stream: ServerHttp2Stream,
    { ':authority': _authority, ...headers }: IncomingHttpHeaders,
  ): void {
    const method = headers[':path']?.split('/').at(-1) ?? '';
    if (this.#refused.has(method)) {
      stream.respond(
        { 'content-type': 'application/grpc', 'grpc-status': '14', 'grpc-message': 'refused' },
        { endStream: true },
      );
      return;
    }
    const onward = this.#upstream.request(headers);
    let trailers: IncomingHttpHeaders = {};
    onward.on('trailers', (received) => (trailers = received));
    onward.on('response', (answer, flags) => {
      const respond = (): void => {
        if (stream.destroyed) return;
        const over = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
        stream.respond(answer, over ? { endStream: true } : { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers(trailers));
        if (!over) onward.pipe(stream);
      };
      const hold = this.#holds.get(method);
      this.#holds.delete(method);
      if (hold === undefined) respond();
      else hold({ release: respond });
    });
    stream.pipe(onward);
    stream.on('error', () => onward.close());
    stream.on('aborted', () => onward.close());
    onward.on('error', () => stream.close());
  }
}
