import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from '@jest/globals';
import { CodecKeyFile } from '../../../worker/codec/codecKeyFile.ts';
import { createCodecServer, isLoopback } from '../../../worker/codec/codecServer.ts';
import { EncryptionCodec } from '../../../worker/codec/encryptionCodec.ts';
import { runCli } from '../../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-codec-server-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'keys');
writeFileSync(path, `first ${randomBytes(32).toString('base64')}\n`);
const codec = new EncryptionCodec(new CodecKeyFile(path));
const UI = 'http://localhost:8233';

const server = (tokens?: () => readonly string[]): FastifyInstance =>
  createCodecServer({ codec, origins: [UI], tokens, logger: pino({ level: 'silent' }) });
/** A payload as the UI and the command line send it. */
const body = (payload: Payload): object => ({
  payloads: [
    {
      metadata: Object.fromEntries(
        Object.entries(payload.metadata ?? {}).map(([name, value]) => [
          name,
          Buffer.from(value).toString('base64'),
        ]),
      ),
      data: Buffer.from(payload.data ?? []).toString('base64'),
    },
  ],
});
const plain = body(defaultPayloadConverter.toPayload({ TOKEN: 'hunter2' }) as Payload);
async function ask(
  to: FastifyInstance,
  url: string,
  payload: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; answer: any; headers: Record<string, unknown> }> {
  const reply = await to.inject({
    method: 'POST',
    url,
    payload: payload as object,
    headers: {
      host: 'localhost:8234',
      'content-type': 'application/json',
      'x-namespace': 'default',
      ...headers,
    },
  });
  return {
    status: reply.statusCode,
    answer: JSON.parse(reply.body || 'null'),
    headers: reply.headers,
  };
}

test('it decodes what it encodes: data and encoding of the payload', async () => {
  const { status, answer } = await ask(server(), '/encode', plain);
  expect(status).toBe(200);
  expect(Buffer.from(answer.payloads[0].metadata.encoding, 'base64').toString()).toBe(
    'binary/encrypted',
  );
  expect(Buffer.from(answer.payloads[0].data, 'base64').toString('latin1')).not.toContain(
    'hunter2',
  );
  expect(await ask(server(), '/decode', answer)).toMatchObject({ status: 200, answer: plain });
  expect(await ask(server(), '/decode', plain)).toMatchObject({ status: 200, answer: plain });
});

test.each([
  ['no payloads', {}],
  ['no list', { payloads: 'x' }],
  ['bytes that are not base64', { payloads: [{ data: '?' }] }],
])('%s: 400', async (_what, payload) => {
  expect(await ask(server(), '/decode', payload)).toMatchObject({
    status: 400,
    answer: { message: expect.stringContaining('"payloads"') },
  });
});

test('a missing key: 400, and the message names it', async () => {
  const other = join(folder, 'other');
  writeFileSync(other, `second ${randomBytes(32).toString('base64')}\n`);
  const [encrypted] = await new EncryptionCodec(new CodecKeyFile(other)).encode([
    defaultPayloadConverter.toPayload(1) as Payload,
  ]);
  expect(await ask(server(), '/decode', body(encrypted as Payload))).toMatchObject({
    status: 400,
    answer: {
      message: expect.stringContaining('the key "second"'),
    },
  });
});

describe('pages', () => {
  test('of the UI are permitted, with the headers that it sends', async () => {
    const preflight = await server().inject({
      method: 'OPTIONS',
      url: '/decode',
      headers: {
        host: 'localhost:8234',
        origin: UI,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-namespace',
      },
    });
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': UI,
      'access-control-allow-methods': 'POST',
      'access-control-allow-credentials': 'true',
    });
    expect(String(preflight.headers['access-control-allow-headers']).split(', ')).toEqual([
      'authorization',
      'content-type',
      'x-namespace',
    ]);
    expect(await ask(server(), '/decode', plain, { origin: UI })).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': UI },
    });
  });

  test.each(['https://evil.example', 'null', `${UI}.evil.example`])(
    'of %s are rejected: without CORS headers, and nothing is decoded',
    async (origin) => {
      const { status, answer, headers } = await ask(server(), '/decode', plain, { origin });
      expect({
        status,
        payloads: answer.payloads,
        allowed: headers['access-control-allow-origin'],
      }).toEqual({ status: 403, payloads: undefined, allowed: undefined });
    },
  );

  test('under another host name that resolves to this machine are rejected', async () => {
    expect(await ask(server(), '/decode', plain, { host: 'evil.example:8234' })).toMatchObject({
      status: 403,
    });
    for (const host of ['127.0.0.1:8234', 'localhost', '[::1]:8234'])
      expect(await ask(server(), '/decode', plain, { host })).toMatchObject({ status: 200 });
  });
});

describe('with a token', () => {
  let tokens = ['new', 'old'];
  const guarded = server(() => tokens);

  test.each([
    ['new', 200],
    ['old', 200],
    ['other', 401],
    ['', 401],
  ])('%j: %s', async (token, status) => {
    expect(
      await ask(
        guarded,
        '/decode',
        plain,
        token === '' ? {} : { authorization: `Bearer ${token}` },
      ),
    ).toMatchObject({ status });
  });

  test('it is read again for each request; the preflight request needs none', async () => {
    tokens = ['rotated'];
    expect(await ask(guarded, '/decode', plain, { authorization: 'Bearer old' })).toMatchObject({
      status: 401,
      answer: { message: expect.stringContaining('--codec-auth') },
    });
    expect(
      await ask(guarded, '/decode', plain, {
        authorization: 'Bearer rotated',
        host: 'codec.example',
      }),
    ).toMatchObject({ status: 200 });
    expect(
      (await guarded.inject({ method: 'OPTIONS', url: '/decode', headers: { origin: UI } }))
        .statusCode,
    ).toBe(204);
  });

  test('that is unreadable, all requests are rejected', async () => {
    const broken = server(() => {
      throw new Error('ENOENT');
    });
    expect(await ask(broken, '/decode', plain, { authorization: 'Bearer new' })).toMatchObject({
      status: 503,
    });
  });
});

test.each([
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['localhost', true],
  ['::1', true],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['127.evil.example', false],
  ['::', false],
])('%s is a loopback address: %s', (host, alone) => {
  expect(isLoopback(host)).toBe(alone);
});

describe('the command', () => {
  const env = { HOLDFAST_CODEC_KEY_FILE: path };

  test.each<[string, string[], Record<string, string>, string]>([
    ['no keys', [], {}, 'HOLDFAST_CODEC_KEY_FILE'],
    [
      'missing keys',
      [],
      { HOLDFAST_CODEC_KEY_FILE: join(folder, 'none') },
      'HOLDFAST_CODEC_KEY_FILE: cannot read',
    ],
    ['a public address without a token', ['--listen', '0.0.0.0:0'], env, '--token-file'],
    ['a missing token file', ['--token-file', join(folder, 'none')], env, '--token-file: ENOENT'],
    ['no address', ['--listen', 'here'], env, '--listen: "here"'],
    ['no origin', ['--origin', 'localhost'], env, '--origin: "localhost"'],
  ])('%s: status 2, and the error names the setting', async (_what, args, settings, message) => {
    expect(await runCli(['codec-server', ...args], settings)).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining(message),
    });
  });
});
