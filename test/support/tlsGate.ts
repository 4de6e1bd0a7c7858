import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  createSecureServer,
  connect,
  constants,
  type ClientHttp2Session,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

/** A certificate and its key, as files. */
export interface CertificateFiles {
  readonly crt: string;
  readonly key: string;
}

/** Creates certificates of one authority in a folder, with openssl. */
export class TestAuthority {
  readonly #folder: string;
  readonly certificate: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.certificate = join(folder, 'ca.crt');
    this.#openssl(
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=test authority',
      '-keyout',
      join(folder, 'ca.key'),
      '-out',
      this.certificate,
    );
  }

  /** Creates a certificate for the server at 127.0.0.1, or a client. @param name - its common name */
  issue(name: string): CertificateFiles {
    const files = {
      crt: join(this.#folder, `${name}.crt`),
      key: join(this.#folder, `${name}.key`),
    };
    this.#openssl(
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-CA',
      this.certificate,
      '-CAkey',
      join(this.#folder, 'ca.key'),
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-addext',
      'basicConstraints=critical,CA:FALSE',
      '-keyout',
      files.key,
      '-out',
      files.crt,
    );
    return files;
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'pipe' });
  }
}

/**
 * A TLS proxy between gRPC clients and a server without TLS. It requires a client certificate, and
 * records who calls with which API key.
 */
export class TlsGate {
  readonly #server: Http2SecureServer;
  readonly #upstream: ClientHttp2Session;
  readonly #sockets = new Map<TLSSocket, string>();
  readonly #refused = new Set<string>();
  /** Common names of the certificates that calls have come with, and their API keys. */
  readonly seen = { names: new Set<string>(), apiKeys: new Set<string>() };

  private constructor(target: string, authority: TestAuthority) {
    const { crt, key } = authority.issue('gate');
    this.#server = createSecureServer({
      cert: readFileSync(crt),
      key: readFileSync(key),
      ca: readFileSync(authority.certificate),
      requestCert: true,
      rejectUnauthorized: true,
    });
    this.#server.on('secureConnection', (socket: TLSSocket) => this.#meet(socket));
    this.#upstream = connect(`http://${target}`);
    this.#server.on('stream', (stream, headers) => this.#pass(stream, headers));
    this.#server.on('sessionError', () => undefined);
  }

  static async open(target: string, authority: TestAuthority): Promise<TlsGate> {
    const gate = new TlsGate(target, authority);
    gate.#server.listen(0, '127.0.0.1');
    await once(gate.#server, 'listening');
    return gate;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Rejects new connections with that certificate, and closes existing ones, as after its expiry.
   */
  refuse(name: string): void {
    this.#refused.add(name);
    for (const [socket, of] of this.#sockets) if (of === name) socket.destroy();
  }

  close(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
    this.#upstream.destroy();
    this.#server.close();
  }

  #meet(socket: TLSSocket): void {
    const name = String(socket.getPeerCertificate().subject.CN);
    if (this.#refused.has(name)) return void socket.destroy();
    this.#sockets.set(socket, name);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #pass(
    stream: ServerHttp2Stream,
    { ':authority': _authority, authorization, ...headers }: IncomingHttpHeaders,
  ): void {
    const name = [...this.#sockets].find(
      ([socket]) => socket.remotePort === stream.session?.socket.remotePort,
    )?.[1];
    if (name !== undefined) this.seen.names.add(name);
    const [, apiKey] = /^Bearer (.*)$/.exec(authorization ?? '') ?? [];
    if (apiKey !== undefined) this.seen.apiKeys.add(apiKey);
    const onward = this.#upstream.request({ ...headers, ':scheme': 'http' });
    let trailers: IncomingHttpHeaders = {};
    onward.on('trailers', (received) => (trailers = received));
    onward.on('response', (answer, flags) => {
      if (stream.destroyed) return;
      const over = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      stream.respond(answer, over ? { endStream: true } : { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(trailers));
      if (!over) onward.pipe(stream);
    });
    stream.pipe(onward);
    stream.on('error', () => onward.close());
    stream.on('aborted', () => onward.close());
    onward.on('error', () => stream.close());
  }
}
