/** The variables that a runner's container has for its proxy and its authorities, before the programs that have to go by them. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { networkPodParts } from '../../activities/compute/kubernetes/network.ts';
import { CA_PATH } from '../../core/domain/podTemplate.ts';
import { ForwardProxy } from '../support/forwardProxy.ts';

/** As it stands in the Secret: what is in a URL is percent-encoded. */
const SECRET: Readonly<Record<string, string>> = { username: 'bot', password: 'p%40ss%2Fword' };
const BODY = '{"hello":"world"}';

let folder: string;
let server: Server;
let proxy: ForwardProxy;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-network-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'ca.crt')];
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
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost',
    ],
    { stdio: 'ignore' },
  );
  server = createServer(
    { key: readFileSync(key), cert: readFileSync(cert) },
    (request, response) => {
      const refs = request.url?.includes('info/refs') === true;
      // What git's first question is answered with: one branch. https://git-scm.com/docs/gitprotocol-http
      const line = `${'1'.repeat(40)} refs/heads/main\0\n`;
      const packet = (text: string): string =>
        (text.length + 4).toString(16).padStart(4, '0') + text;
      if (refs)
        response
          .writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
          .end(`${packet('# service=git-upload-pack\n')}0000${packet(line)}0000`);
      else response.writeHead(200, { 'content-type': 'application/json' }).end(BODY);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

beforeEach(async () => {
  proxy = await new ForwardProxy('bot:p@ss/word').start();
});
afterEach(async () => await proxy.stop());

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

/** What the kubelet makes of them: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/ */
function environment(parts: Parameters<typeof networkPodParts>[0]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { name, value, valueFrom } of networkPodParts(parts).env)
    env[name] = (value ?? SECRET[valueFrom?.secretKeyRef?.key ?? ''] ?? '')
      .replaceAll(/\$\((\w+)\)/g, (whole, other: string) => env[other] ?? whole)
      .replace(CA_PATH, folder);
  return env;
}

const url = (): string => `https://localhost:${(server.address() as AddressInfo).port}/acme/app`;
const CA = { configMapKeyRef: { name: 'acme-ca', key: 'ca.crt' } };
const PROGRAMS: readonly (readonly [string, string, (at: string) => string[], string])[] = [
  ['git', 'git', (at) => ['ls-remote', at], 'refs/heads/main'],
  ['curl', 'curl', (at) => ['--silent', '--show-error', '--fail', at], BODY],
  [
    'Node',
    process.execPath,
    (at) => [
      '-e',
      `fetch(${JSON.stringify(at)}).then(async (answer) => console.log(await answer.text()))`,
    ],
    BODY,
  ],
];

async function run(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, [...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      GIT_CONFIG_NOSYSTEM: '1',
      NODE_USE_ENV_PROXY: '1',
      ...env,
    },
  });
  return stdout;
}

test.each(PROGRAMS)(
  '%s goes through the proxy, with its password, and trusts the authority',
  async (_name, program, args, expected) => {
    const env = environment({
      proxy: { https: { url: `http://${proxy.host}`, credentialSecretRef: 'login' } },
      ca: CA,
    });
    expect(await run(program, args(url()), env)).toContain(expected);
    expect(proxy.passed).toEqual([`CONNECT ${new URL(url()).host}`]);
  },
);

test.each(PROGRAMS)(
  '%s goes past the proxy to a host that needs none',
  async (_name, program, args, expected) => {
    const env = environment({
      proxy: {
        https: { url: `http://${proxy.host}`, credentialSecretRef: 'login' },
        noProxy: ['localhost'],
      },
      ca: CA,
    });
    expect(await run(program, args(url()), env)).toContain(expected);
    expect(proxy.passed).toEqual([]);
  },
);

test.each(PROGRAMS)('%s does not trust it without', async (_name, program, args) => {
  await expect(run(program, args(url()), environment({}))).rejects.toMatchObject({
    stderr: expect.stringMatching(/certificate/i),
  });
});
