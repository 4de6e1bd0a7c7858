import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { ForwardProxy } from '../support/forwardProxy.ts';
import { listJson, RecordedGitHub } from '../support/recordedGitHub.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const LIST = 'GET /api/v3/orgs/acme/actions/runners';
const PROXY_VARIABLES = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
];

let folder: string;
let certFile: string;
let otherFile: string;
let tokenFile: string;
let http: RecordedGitHub;
let https: RecordedGitHub;
let proxy: ForwardProxy;
let environment: Record<string, string | undefined>;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  environment = Object.fromEntries(PROXY_VARIABLES.map((name) => [name, process.env[name]]));
  for (const name of PROXY_VARIABLES) delete process.env[name];
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  tokenFile = join(folder, 'token');
  certFile = join(folder, 'cert.pem');
  const keyFile = join(folder, 'key.pem');
  writeFileSync(tokenFile, 'ghp_x');
  otherFile = join(folder, 'other.pem');
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  for (const [key, cert] of [
    [join(folder, 'other-key.pem'), otherFile],
    [keyFile, certFile],
  ] as const)
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        '-keyout',
        key,
        '-out',
        cert,
        ...subject,
      ],
      { stdio: 'ignore' },
    );
  http = await new RecordedGitHub().on(LIST, listJson()).start();
  https = await new RecordedGitHub({
    https: { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') },
  })
    .on(LIST, listJson())
    .start();
  proxy = await new ForwardProxy('bot:pa%ss').start();
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  for (const each of [http, https, proxy]) await each.stop();
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  rmSync(folder, { recursive: true });
});

function find(settings: Record<string, unknown>): Promise<unknown> {
  const { server, close } = ciServerOf({ type: 'pat', tokenFile, ...settings });
  closing.push(close);
  return server.findRunner(SCOPE, { name: 'r' });
}

const proxyUrl = (): string => `http://bot:pa%25ss@${proxy.host}`;

test('https through a proxy with a password: a tunnel, and the certificate authority of the server', async () => {
  expect(
    await find({ apiUrl: `${https.url}/api/v3`, caFile: certFile, proxy: proxyUrl() }),
  ).toBeUndefined();
  expect(proxy.passed).toEqual([`CONNECT ${new URL(https.url).host}`]);
  expect(https.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
});

test('http through a proxy', async () => {
  expect(await find({ apiUrl: `${http.url}/api/v3`, proxy: proxyUrl() })).toBeUndefined();
  expect(proxy.passed).toHaveLength(1);
  expect(http.requests).toHaveLength(1);
});

test('a proxy of the environment', async () => {
  process.env['HTTPS_PROXY'] = proxyUrl();
  await find({ apiUrl: `${https.url}/api/v3`, caFile: certFile });
  expect(proxy.passed).toHaveLength(1);
});

test('NO_PROXY of the environment', async () => {
  process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1';
  process.env['NO_PROXY'] = '127.0.0.1';
  await find({ apiUrl: `${https.url}/api/v3`, caFile: certFile });
  expect(https.requests).toHaveLength(1);
});

test('a proxy of the credential is not subject to NO_PROXY', async () => {
  process.env['NO_PROXY'] = '*';
  await find({ apiUrl: `${https.url}/api/v3`, caFile: certFile, proxy: proxyUrl() });
  expect(proxy.passed).toHaveLength(1);
});

test.each(['http', 'https'])(
  '%s: a proxy that rejects the password does not decide about the runner',
  async (scheme) => {
    const error = await ciServerError(
      find({
        apiUrl: `${scheme === 'http' ? http.url : https.url}/api/v3`,
        caFile: certFile,
        proxy: `http://bot:wrong@${proxy.host}`,
      }),
    );
    expect(error.kind).toBe('unavailable');
    expect(error.message).toMatch(/407|proxy/i);
    expect(error.message).not.toContain('wrong');
  },
);

/** Node reads NODE_EXTRA_CA_CERTS at its start. */
test.each([
  ['alone', (): object => ({})],
  ['beside a caFile of another authority', (): object => ({ caFile: otherFile })],
])(
  "the environment's proxy and certificate authorities (HTTPS_PROXY, NODE_EXTRA_CA_CERTS), %s",
  async (_how, more) => {
    const credentials = {
      default: { type: 'pat', tokenFile, apiUrl: `${https.url}/api/v3`, ...more() },
    };
    const script = `
    import { createCiServers, parseCredentials } from ${JSON.stringify(new URL('../../activities/ciServers/index.ts', import.meta.url).href)};
    const servers = createCiServers(parseCredentials(${JSON.stringify(credentials)}));
    console.log(JSON.stringify(await servers.get('default').listRunners(${JSON.stringify(SCOPE)})));
    await servers.close();`;
    const ask = async (env: Record<string, string>): Promise<unknown> =>
      JSON.parse(
        (
          await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
            env: { PATH: process.env['PATH'] ?? '', HTTPS_PROXY: proxyUrl(), ...env },
          })
        ).stdout,
      );
    expect(await ask({ NODE_EXTRA_CA_CERTS: certFile })).toEqual([]);
    expect(proxy.passed).toEqual([`CONNECT ${new URL(https.url).host}`]);
    await expect(ask({})).rejects.toMatchObject({ stderr: expect.stringContaining('caFile') });
  },
);

test('a certificate of an unknown authority: the error names the setting', async () => {
  expect(await ciServerError(find({ apiUrl: `${https.url}/api/v3` }))).toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('caFile'),
  });
  expect(https.requests).toHaveLength(0);
});
