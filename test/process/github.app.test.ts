import { createVerify, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Clock } from '../../activities/ciServers/clock.ts';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import {
  listJson,
  RecordedGitHub,
  type RecordedAnswer,
  type SeenRequest,
} from '../support/recordedGitHub.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const EXCHANGE = 'POST /app/installations/34/access_tokens';
const LIST = 'GET /orgs/acme/actions/runners';
const bad = (
  status: number,
  message: string,
  headers: Record<string, string> = {},
): RecordedAnswer => ({
  status,
  headers,
  body: { message, documentation_url: 'https://docs.github.com/rest' },
});

let github: RecordedGitHub;
let folder: string;
let keyFile: string;
let keys: { publicKey: string; privateKey: string };
let server: CiServer;
let close: () => Promise<void>;
/** Runs ahead of the real time by this much. */
let ahead: number;
let slept: number[];
let issued: number;

const newKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });

/** Exchanges a JWT that is signed with the present key for a token of an hour. */
function exchange({ headers }: SeenRequest): RecordedAnswer {
  const [head = '', body = '', signature = ''] = String(headers['authorization'])
    .replace(/^bearer /i, '')
    .split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as { iss: unknown };
  const genuine = createVerify('RSA-SHA256')
    .update(`${head}.${body}`)
    .verify(keys.publicKey, signature, 'base64url');
  if (!genuine || String(claims.iss) !== '12')
    return bad(401, 'A JSON web token could not be decoded');
  issued += 1;
  return {
    status: 201,
    body: {
      token: `ghs_${issued}`,
      expires_at: new Date(Date.now() + ahead + 3_600_000).toISOString(),
      permissions: {},
    },
  };
}

/** Accepts only the token issued last. */
const list = ({ headers }: SeenRequest): RecordedAnswer =>
  headers['authorization'] === `Bearer ghs_${issued}` ? listJson() : bad(401, 'Bad credentials');

const find = (): Promise<unknown> => server.findRunner(SCOPE, { name: 'r' });

beforeEach(async () => {
  github = await new RecordedGitHub().start();
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  keyFile = join(folder, 'key.pem');
  keys = newKeys();
  writeFileSync(keyFile, keys.privateKey);
  [ahead, slept, issued] = [0, [], 0];
  const clock: Clock = {
    now: () => Date.now() + ahead,
    elapsed: () => performance.now(),
    sleep: (ms, signal) => (signal?.throwIfAborted(), slept.push(ms), Promise.resolve()),
  };
  ({ server, close } = ciServerOf(
    { type: 'app', appId: 12, installationId: 34, privateKeyFile: keyFile, apiUrl: github.url },
    { clock },
  ));
  github.on(EXCHANGE, exchange).on(LIST, list);
});

afterEach(async () => {
  await close();
  await github.stop();
  rmSync(folder, { recursive: true });
});

describe('a GitHub App', () => {
  test('exchanges its key for one installation token, used by many requests until shortly before its end', async () => {
    await Promise.all([find(), find(), find()]);
    expect(issued).toBe(1);
    ahead = 54 * 60_000;
    await find();
    expect(issued).toBe(1);
    ahead = 56 * 60_000;
    await find();
    expect(issued).toBe(2);
  });

  test('gets a token with only the permissions that it uses, from an App with more', async () => {
    const granted = {
      actions: 'write',
      contents: 'write',
      organization_self_hosted_runners: 'read',
    };
    const asked: unknown[] = [];
    github.on(EXCHANGE, (request) => {
      const { permissions = granted } = (request.body ?? {}) as { permissions?: object };
      asked.push(permissions);
      const answer = exchange(request);
      return { ...answer, body: { ...(answer.body as object), permissions } };
    });
    await find();
    expect(asked).toEqual([granted, { actions: 'read', organization_self_hosted_runners: 'read' }]);
  });

  test('gets a new token immediately if the old one is rejected', async () => {
    await find();
    issued += 1; // the one in use is revoked
    ahead = 60_000;
    await find();
    expect(github.seen.filter((each) => each === EXCHANGE)).toHaveLength(2);
  });

  test('waits a second until a new token is accepted', async () => {
    github.on(LIST, bad(401, 'Bad credentials'), list);
    await find();
    expect(slept).toEqual([1000]);
    expect(issued).toBe(1);
  });

  test('reports a token that is always rejected as an error of the credential', async () => {
    github.on(LIST, bad(401, 'Bad credentials'));
    expect(await ciServerError(find())).toMatchObject({ kind: 'credentials', status: 401 });
    expect(github.seen.filter((each) => each.startsWith(LIST))).toHaveLength(3);
  });

  test('a rotated key is used without a restart', async () => {
    await find();
    keys = newKeys();
    writeFileSync(keyFile, keys.privateKey);
    await find();
    expect(issued).toBe(2);
  });

  test("corrects a wrong clock by the server's date", async () => {
    const skewed = bad(401, "'Expiration time' claim ('exp') is too far in the future", {
      date: new Date(Date.now() - 3_600_000).toUTCString(),
    });
    let claims: { exp: number } | undefined;
    github.on(EXCHANGE, skewed, (request) => {
      claims = JSON.parse(
        Buffer.from(
          String(request.headers['authorization']).split('.')[1] ?? '',
          'base64url',
        ).toString(),
      ) as { exp: number };
      return exchange(request);
    });
    await find();
    expect(claims?.exp).toBeLessThan(Date.now() / 1000 - 2000);
  });

  test.each([
    ['the wrong key', bad(401, 'A JSON web token could not be decoded'), 'credentials'],
    ['no such installation', bad(404, 'Not Found'), 'credentials'],
    ['a suspended installation', bad(403, 'This installation has been suspended'), 'credentials'],
    [
      'a limit',
      {
        ...bad(403, 'You have exceeded a secondary rate limit.'),
        headers: { 'retry-after': '60' },
      },
      'rate_limited',
    ],
    ['an error of the server', bad(502, 'Server Error'), 'unavailable'],
    [
      'a page',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
      'unavailable',
    ],
  ] as const)('exchange answered with %s', async (_title, answer, kind) => {
    github.on(EXCHANGE, answer);
    const error = await ciServerError(find());
    expect(error.kind).toBe(kind);
    expect(error.message).toContain('access_tokens');
  });

  test.each(['elsewhere', 'http://', ''])(
    'ignores a next page of failed deliveries at %j, which is not a URL',
    async (next) => {
      github.on('GET /app/hook/deliveries', {
        status: 200,
        headers: { link: `<${next}>; rel="next"` },
        body: [],
      });
      expect(await server.redeliverFailed?.({ maxRedeliveries: 1 })).toEqual({
        redelivered: 0,
        postponed: 0,
      });
    },
  );

  test('a file without a key', async () => {
    writeFileSync(
      keyFile,
      '-----BEGIN RSA PRIVATE KEY-----\nrubbish\n-----END RSA PRIVATE KEY-----',
    );
    const error = await ciServerError(find());
    expect(error.kind).toBe('credentials');
    expect(error.message).not.toContain('rubbish');
  });

  test("two servers with the same installation id do not get each other's token", async () => {
    const other = await new RecordedGitHub().start();
    const elsewhere = ciServerOf({
      type: 'app',
      appId: 12,
      installationId: 34,
      privateKeyFile: keyFile,
      apiUrl: other.url,
    });
    try {
      other.on(EXCHANGE, {
        status: 201,
        body: { token: 'ghs_other', expires_at: '2099-01-01T00:00:00Z' },
      });
      other.on(LIST, ({ headers }) =>
        headers['authorization'] === 'Bearer ghs_other' ? listJson() : bad(401, 'Bad credentials'),
      );
      await expect(
        Promise.all([find(), elsewhere.server.findRunner(SCOPE, { name: 'r' })]),
      ).resolves.toHaveLength(2);
    } finally {
      await elsewhere.close();
      await other.stop();
    }
  });
});
