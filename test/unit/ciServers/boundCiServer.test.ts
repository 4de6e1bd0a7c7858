import { describe, expect, test } from '@jest/globals';
import type { CiServerKind } from '../../../core/domain/ciServerKind.ts';
import { credentialError } from '../../../activities/runner/admit.ts';
import { restrictCiServer } from '../../../activities/ciServers/restrictedCiServer.ts';
import { createCiServers, parseCredentials } from '../../../activities/ciServers/index.ts';
import { checkCredentials } from '../../../worker/checks/credentialCheck.ts';
import type { RegisterRequest, Scope } from '../../../core/domain/ciServer.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';

const organization = (name: string): Scope => ({ kind: 'organization', name });
const repository = (name: string): Scope => ({ kind: 'repository', name });
const enterprise = (name: string): Scope => ({ kind: 'enterprise', name });

describe('a credential is used for its scopes and groups only', () => {
  const scopes = ['Acme', 'other/Web', 'enterprises/big'];

  test.each<[Scope, boolean]>([
    [organization('acme'), true],
    [organization('ACME'), true],
    [repository('acme/anything'), true],
    [repository('Other/web'), true],
    [enterprise('Big'), true],
    [organization('other'), false],
    [repository('other/api'), false],
    [repository('acme-evil/web'), false],
    [organization('big'), false],
    [enterprise('acme'), false],
  ])('%j: %s', (scope, allowed) => {
    const refusal = restrictCiServer(new FakeCiServer(), 'main', { scopes }).accessError?.(scope, {
      id: '7',
    });
    const rejected: unknown = expect.stringMatching(
      /^credential "main" is not for .*: the worker's config has it for Acme, other\/Web, enterprises\/big$/,
    );
    expect(refusal).toEqual(allowed ? undefined : rejected);
  });

  test('every call is rejected before it reaches the server, independent of admission', async () => {
    const server = new FakeCiServer();
    const main = restrictCiServer(server, 'main', { scopes: ['acme'], groups: ['3'] });
    const request: RegisterRequest = {
      scope: organization('victim'),
      name: 'r',
      labels: [],
      group: { id: '3' },
      ephemeral: true,
      mode: 'jit',
    };
    const rejected = { kind: 'rejected', message: expect.stringContaining('not for victim') };
    await expect(main.register(request)).rejects.toMatchObject(rejected);
    await expect(main.findRunner(organization('victim'), { name: 'r' })).rejects.toMatchObject(
      rejected,
    );
    await expect(main.listRunners(organization('victim'))).rejects.toMatchObject(rejected);
    await expect(main.removeRegistration(organization('victim'), '1')).rejects.toMatchObject(
      rejected,
    );
    await expect(
      main.register({ ...request, scope: organization('acme'), group: 'default' }),
    ).rejects.toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining('not for runner group 1'),
    });
    expect(server.calls).toEqual([]);
    await main.register({ ...request, scope: organization('acme') });
    expect(server.calls).toMatchObject([{ method: 'register' }]);
  });

  test.each<[what: string, bound: object, asked: object, why: string | undefined]>([
    ['one of its labels', { labels: ['ci-*'] }, { labels: ['CI-big'] }, undefined],
    ['the label of every runner', { labels: ['ci-*'] }, { labels: ['self-hosted'] }, undefined],
    [
      'the label of its location',
      { labels: ['x'] },
      { labels: ['holdfast-0123456789'] },
      undefined,
    ],
    ['another label', { labels: ['ci-*'] }, { labels: ['ci-a', 'prod-deploy'] }, '"prod-deploy"'],
    ['a label that only has the prefix', { labels: ['ci'] }, { labels: ['ci-a'] }, '"ci-a"'],
    ['a token, without groups', { labels: ['*'] }, { mode: 'token' }, undefined],
    ['a token, with groups', { groups: ['3'] }, { mode: 'token' }, 'static runner'],
    ['a JIT config, with groups', { groups: ['3'] }, { mode: 'jit' }, undefined],
  ])('%s: at admission, and with the call', async (_what, bound, asked, why) => {
    const server = new FakeCiServer();
    const main = restrictCiServer(server, 'main', bound);
    const request: RegisterRequest = {
      scope: organization('acme'),
      name: 'r',
      labels: [],
      group: { id: '3' },
      ephemeral: true,
      mode: 'jit',
      ...asked,
    };
    const registered = main.register(request).then(
      () => undefined,
      (error: Error) => error.message,
    );
    const rejected: unknown = expect.stringContaining(why ?? '');
    const expected = why === undefined ? undefined : rejected;
    expect(main.accessError?.(request.scope, request.group, asked)).toEqual(expected);
    expect(await registered).toEqual(expected);
    expect(server.calls).toHaveLength(why === undefined ? 1 : 0);
  });

  test('a group requested by name is checked by its ID, and joined by it', async () => {
    const joined: unknown[] = [];
    const server = Object.assign(new FakeCiServer(), {
      runnerGroupId: async (_scope: Scope, name: string) =>
        await Promise.resolve(name === 'gpu' ? '3' : '4'),
      register: async ({ group, name }: RegisterRequest) => {
        joined.push(group);
        return await Promise.resolve({ runnerName: name, env: {} });
      },
    });
    const main = restrictCiServer(server, 'main', { groups: ['3'] });
    const request: RegisterRequest = {
      scope: organization('acme'),
      name: 'r',
      labels: [],
      group: { name: 'big' },
      ephemeral: true,
      mode: 'jit',
    };
    expect(main.accessError?.(request.scope, { name: 'big' })).toBeUndefined();
    await expect(main.register(request)).rejects.toMatchObject({
      kind: 'rejected',
      message:
        'credential "main" is not for runner group "big" (4): the worker\'s config has it for 3',
    });
    await main.register({ ...request, group: { name: 'gpu' } });
    expect(joined).toEqual([{ id: '3' }]);
  });

  test('admission reports it to the user', async () => {
    const ciServers = createCiServers(
      parseCredentials({
        main: { type: 'pat', tokenEnv: 'T', scopes: ['acme'], groups: ['2'] },
        any: { type: 'pat', tokenEnv: 'T' },
      }),
    );
    expect(
      credentialError(ciServers, {
        credential: 'main',
        scope: organization('acme'),
        runnerGroup: { id: '2' },
      }),
    ).toBeUndefined();
    expect(
      credentialError(ciServers, {
        credential: 'main',
        scope: repository('victim/web'),
        runnerGroup: { id: '2' },
      }),
    ).toMatch(/^credential "main" is not for victim\/web/);
    expect(
      credentialError(ciServers, {
        credential: 'main',
        scope: organization('acme'),
        runnerGroup: 'default',
      }),
    ).toMatch(/^credential "main" is not for runner group 1/);
    expect(
      credentialError(ciServers, { credential: 'any', scope: organization('victim') }),
    ).toBeUndefined();
    expect(credentialError(ciServers, { credential: 'none', scope: organization('acme') })).toMatch(
      /^unknown credential "none"/,
    );
    expect(credentialError(ciServers, { credential: 'none' })).toBeUndefined();
    await ciServers.close();
  });

  test.each<[string, { ciServer?: CiServerKind }, RegExp | undefined]>([
    ['that names the server', { ciServer: 'github' }, undefined],
    [
      'of another server',
      { ciServer: 'gitea' as 'github' },
      /^credential "any" is for a github server.*"gitea"/,
    ],
    ['that has no such field', {}, undefined],
  ])('a credential belongs to a CI server of its kind: input %s', async (_what, input, error) => {
    const ciServers = createCiServers(parseCredentials({ any: { type: 'pat', tokenEnv: 'T' } }));
    const use = { credential: 'any', scope: organization('acme'), ...input };
    const rejected: unknown = expect.stringMatching(error ?? '');
    expect(credentialError(ciServers, use)).toEqual(error === undefined ? undefined : rejected);
    await ciServers.close();
  });

  test('with several credentials, one without scopes is a warning', async () => {
    const readable = { type: 'pat', tokenEnv: 'PATH' } as const;
    const warnings = async (raw: object): Promise<string[]> =>
      (await checkCredentials(parseCredentials(raw)))
        .filter(({ level }) => level === 'warning')
        .map(({ message }) => message);
    expect(await warnings({ a: readable })).toEqual([]);
    expect(await warnings({ a: readable, b: { ...readable, scopes: ['acme'] } })).toEqual([
      expect.stringContaining('credential "a"'),
    ]);
    expect(
      await warnings({ a: { ...readable, scopes: ['x'] }, b: { ...readable, scopes: ['acme'] } }),
    ).toEqual([]);
  });
});
