import assert from 'node:assert/strict';
import { describe, expect, test } from '@jest/globals';
import {
  createCiServers,
  CredentialsError,
  parseCredentials,
} from '../../../activities/ciServers/index.ts';
import { pointsPerMinute } from '../../../activities/ciServers/credentials.ts';
import { registrationUrl, webUrlOf } from '../../../activities/ciServers/github/addresses.ts';
import { SecretSource } from '../../../activities/ciServers/secretSource.ts';
import { UnknownCredentialError } from '../../../activities/ports/ciServer.ts';

function problemsOf(raw: unknown): readonly string[] {
  try {
    parseCredentials(raw);
  } catch (error) {
    if (error instanceof CredentialsError) return error.problems;
    throw error;
  }
  return [];
}

describe('credentials', () => {
  test('defaults', () => {
    const { main } = parseCredentials({ main: { type: 'pat', tokenEnv: 'TOKEN' } });
    expect(main).toEqual({
      type: 'pat',
      tokenEnv: 'TOKEN',
      server: 'github',
      apiUrl: 'https://api.github.com',
      requestTimeoutSeconds: 30,
      reruns: false,
      allowPublicRepositories: true,
      maxInFlight: 90,
    });
    expect(main && pointsPerMinute(main)).toBe(900);
  });

  test('an App of a GitHub Enterprise Server: IDs may be strings, trailing slashes are removed, no rate limit by default', () => {
    const { ghes, paced } = parseCredentials({
      ghes: {
        type: 'app',
        appId: '12',
        installationId: 34,
        privateKeyFile: '/k.pem',
        apiUrl: 'https://ghe.example/api/v3/',
      },
      paced: {
        type: 'pat',
        tokenFile: '/t',
        apiUrl: 'https://ghe.example/api/v3',
        pointsPerMinute: 500,
      },
    });
    expect(ghes).toMatchObject({
      appId: 12,
      installationId: 34,
      apiUrl: 'https://ghe.example/api/v3',
    });
    expect(ghes && pointsPerMinute(ghes)).toBeUndefined();
    expect(paced && pointsPerMinute(paced)).toBe(500);
  });

  test('a secret in memory comes from a function, which is called for each use', async () => {
    let token = 'first';
    const { main } = parseCredentials({ main: { type: 'pat', tokenProvider: () => token } });
    assert(main);
    const secret = new SecretSource('main', main);
    expect(await secret.read()).toBe('first');
    token = 'second';
    expect(await secret.read()).toBe('second');
    token = '';
    await expect(secret.read()).rejects.toMatchObject({ kind: 'credentials' });
    const failing = async (): Promise<string> => await Promise.reject(new Error('vault sealed'));
    const { app } = parseCredentials({
      app: { type: 'app', appId: 1, installationId: 2, privateKeyProvider: failing },
    });
    assert(app);
    await expect(new SecretSource('app', app).read()).rejects.toMatchObject({
      kind: 'credentials',
      message: expect.stringContaining('vault sealed'),
    });
    expect(problemsOf({ text: { type: 'pat', tokenProvider: 'ghp_x' } })).toEqual([
      'credentials.text.tokenProvider: must be a function that returns the secret',
    ]);
  });

  test.each<[string, object, object, string[]]>([
    ['none', {}, {}, []],
    ['one, and none for the other', { server: 'github' }, {}, []],
    [
      'an unknown server',
      { server: 'gitlab' },
      { server: 'github' },
      ['credentials.a.server: unknown'],
    ],
    [
      'an unknown server, and none for the other',
      { server: 'gitlab' },
      {},
      ['credentials.a.server: unknown', 'credentials.b.server: is missing'],
    ],
  ])('names of servers: %s', (_what, a, b, expected) => {
    const secret = { type: 'pat', tokenEnv: 'T' };
    const problems = problemsOf({ a: { ...secret, ...a }, b: { ...secret, ...b } });
    expect(problems).toEqual(expected.map((start) => expect.stringContaining(start)));
    for (const problem of problems) expect(problem).toContain('"github"');
  });

  test('every problem is reported at once, with the field and the fix', () => {
    const problems = problemsOf({
      none: { type: 'pat' },
      both: { type: 'app', appId: 1, installationId: 2, privateKeyFile: 'a', privateKeyEnv: 'b' },
      inline: { type: 'pat', token: 'ghp_x', tokenEnv: 'T' },
      kind: { type: 'oauth' },
      url: { type: 'pat', tokenEnv: 'T', apiUrl: 'ftp://x' },
      web: { type: 'pat', tokenEnv: 'T', apiUrl: 'https://github.com' },
      ids: { type: 'app', appId: 'x', privateKeyEnv: 'K' },
      scopes: {
        type: 'pat',
        tokenEnv: 'T',
        scopes: ['acme', 'https://github.com/acme'],
        groups: [7],
        taskQueues: [],
      },
      'bad name': { type: 'pat', tokenEnv: 'T' },
    });
    expect(problems).toEqual(
      expect.arrayContaining([
        'credentials.none.tokenFile: has no secret: give exactly one of tokenFile and tokenEnv, or in code tokenProvider',
        'credentials.both.privateKeyFile: has more than one secret: give exactly one of privateKeyFile and privateKeyEnv, or in code privateKeyProvider',
        expect.stringMatching(
          /^credentials\.inline\.token: secrets do not belong in the configuration: .*tokenFile or tokenEnv/,
        ),
        'credentials.kind.type: must be "pat" or "app"',
        'credentials.url.apiUrl: must be an http:// or https:// URL',
        expect.stringMatching(/^credentials\.web\.apiUrl: .*https:\/\/api\.github\.com/),
        'credentials.ids.appId: must be a number',
        expect.stringMatching(/^credentials\.ids\.installationId: /),
        expect.stringMatching(/^credentials\.scopes\.scopes\.1: /),
        expect.stringMatching(/^credentials\.scopes\.groups\.0: /),
        'credentials.scopes.taskQueues: must name at least one',
        expect.stringMatching(/^credentials\.bad name: .*1 to 63/),
      ]),
    );
    expect(problems.join()).not.toContain('ghp_x');
  });

  test.each([undefined, 'x', []])('%p is not a set of credentials', (raw) => {
    expect(problemsOf(raw)).toHaveLength(1);
  });

  test('an unknown credential is reported with the known ones', () => {
    const servers = createCiServers(
      parseCredentials({ a: { type: 'pat', tokenEnv: 'T' }, b: { type: 'pat', tokenEnv: 'T' } }),
    );
    expect(() => servers.get('c')).toThrow(UnknownCredentialError);
    expect(() => servers.get('c')).toThrow(
      'unknown credential "c": the worker\'s config names "a", "b"',
    );
    expect(() => servers.get('toString')).toThrow(UnknownCredentialError);
    expect(servers.get('a')).toBe(servers.get('a'));
  });
});

test('an unreadable file of certificate authorities is reported at start', () => {
  const credentials = parseCredentials({
    a: { type: 'pat', tokenEnv: 'T', caFile: '/nowhere/ca.pem' },
  });
  expect(() => createCiServers(credentials)).toThrow(
    'credentials.a.caFile: cannot read /nowhere/ca.pem (ENOENT)',
  );
});

test.each([
  ['https://api.github.com', 'https://github.com'],
  ['https://api.acme.ghe.com', 'https://acme.ghe.com'],
  ['https://ghe.example/api/v3', 'https://ghe.example'],
  ['https://ghe.example:8443/api/v3', 'https://ghe.example:8443'],
  ['http://127.0.0.1:4010', 'http://127.0.0.1:4010'],
])('runners of the API %s register at %s', (apiUrl, webUrl) => {
  expect(webUrlOf(apiUrl)).toBe(webUrl);
});

test.each([
  [{ kind: 'organization', name: 'acme' }, 'https://github.com/acme'],
  [{ kind: 'repository', name: 'acme/web' }, 'https://github.com/acme/web'],
  [{ kind: 'enterprise', name: 'big' }, 'https://github.com/enterprises/big'],
] as const)('%p registers at %s', (scope, url) => {
  expect(registrationUrl('https://github.com', scope)).toBe(url);
});
