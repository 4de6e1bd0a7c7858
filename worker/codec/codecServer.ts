/**
 * Remote codec over HTTP for the Temporal UI and CLI (https://docs.temporal.io/codec-server).
 * `POST /encode` and `POST /decode` take payloads as JSON and return them encrypted or decrypted.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { Payload, PayloadCodec } from '@temporalio/common';
import {
  fastify,
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import { PayloadKeyError } from './encryptionCodec.ts';

/** Options of {@link createCodecServer}. */
export interface CodecServerOptions {
  readonly codec: PayloadCodec;
  /**
   * Origins of pages that may send requests, such as `http://localhost:8233` of the Temporal UI.
   */
  readonly origins: readonly string[];
  /**
   * Returns the current bearer tokens, any of which is accepted. If `undefined`, no token is
   * required, so listen on this machine only.
   * @throws Error if the tokens cannot be read
   */
  readonly tokens: (() => readonly string[]) | undefined;
  readonly logger: Logger;
}

/**
 * Body limit (bytes). Temporal accepts 4 MiB per message, base64 adds a third, and the UI may send
 * several events at once.
 */
const BODY_LIMIT = 16 * 1024 * 1024;
/** Request headers that the UI and the CLI send. */
const ALLOWED_HEADERS = 'authorization, content-type, x-namespace';

/** In protobuf's JSON, bytes are base64. */
const bytes = z.base64().transform((text): Uint8Array => Buffer.from(text, 'base64'));
const body = z.object({
  payloads: z.array(
    z.object({ metadata: z.record(z.string(), bytes).optional(), data: bytes.optional() }),
  ),
});
const json = ({ metadata = {}, data }: Payload): object => ({
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)]),
  ),
  data: base64(data),
});
const base64 = (value: Uint8Array | null | undefined): string =>
  Buffer.from(value ?? []).toString('base64');

/** Returns whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/**
 * Creates the codec server, with which the Temporal UI and CLI decode encrypted payloads. It
 * listens when its `listen` is called.
 */
export function createCodecServer({
  codec,
  origins,
  tokens,
  logger,
}: CodecServerOptions): FastifyInstance {
  const loggerInstance: FastifyBaseLogger = logger.child({}, { level: 'warn' });
  const server = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    requestTimeout: 15_000,
  });

  server.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    if (origin !== undefined) {
      if (!origins.includes(origin))
        return await refuse(
          reply,
          403,
          `pages of ${origin.slice(0, 200)} may not ask here: allow them with --origin`,
        );
      void reply.headers({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        vary: 'origin',
      });
    }
    if (request.method === 'OPTIONS')
      return await reply
        .code(204)
        .headers({
          'access-control-allow-methods': 'POST',
          'access-control-allow-headers': ALLOWED_HEADERS,
          'access-control-max-age': '600',
        })
        .send();
    return tokens === undefined
      ? await fromHere(request, reply)
      : await withToken(request, reply, tokens, logger);
  });
  for (const [path, run] of [
    ['/encode', codec.encode.bind(codec)],
    ['/decode', codec.decode.bind(codec)],
  ] as const) {
    server.options(path, async (_request, reply) => await reply.code(204).send());
    server.post(path, async (request, reply) => {
      const parsed = body.safeParse(request.body);
      if (!parsed.success)
        return await refuse(
          reply,
          400,
          'the body is not {"payloads": [{"metadata": {…}, "data": "base64"}, …]}',
        );
      try {
        return { payloads: (await run(parsed.data.payloads as Payload[])).map(json) };
      } catch (error) {
        if (!(error instanceof PayloadKeyError)) throw error;
        logger.warn(
          { namespace: String(request.headers['x-namespace'] ?? '').slice(0, 100) },
          error.message,
        );
        return await refuse(reply, 400, error.message);
      }
    });
  }
  return server;
}

async function refuse(reply: FastifyReply, status: number, message: string): Promise<FastifyReply> {
  return await reply.code(status).send({ message });
}

/**
 * Rejects requests with another host name. A page may resolve its own name to this machine, so that
 * its requests have no other origin, but they still have its host name.
 */
async function fromHere(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  return isLoopback(request.hostname.replace(/^\[|\]$/g, ''))
    ? undefined
    : await refuse(reply, 403, 'without a token (--token-file) this answers to localhost only');
}

async function withToken(
  request: FastifyRequest,
  reply: FastifyReply,
  tokens: () => readonly string[],
  logger: Logger,
): Promise<FastifyReply | undefined> {
  const [, given = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  let known: readonly string[];
  try {
    known = tokens();
  } catch (error) {
    logger.error(
      { err: error },
      'the token file cannot be read; all requests are rejected until it can',
    );
    return await refuse(reply, 503, 'the token cannot be read');
  }
  if (known.some((token) => isSame(token, given))) return undefined;
  return await refuse(
    reply.header('www-authenticate', 'Bearer'),
    401,
    'needs the bearer token of --token-file: temporal --codec-auth "Bearer …"',
  );
}

/** Compares two texts of any lengths in constant time. */
function isSame(one: string, other: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}
