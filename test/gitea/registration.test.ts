/** What Gitea's adapter does beyond the contract of all adapters, on a real Gitea. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import type { RegisterRequest, Scope } from '../../core/domain/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { Gitea } from '../support/gitea.ts';
import { describeWithLab } from '../support/lab.ts';

const ORGANIZATION: Scope = { kind: 'organization', name: 'acme' };
const REPOSITORY: Scope = { kind: 'repository', name: 'acme/app' };
/** More than one page of a list. */
const MANY = 51;

await describeWithLab('Registrations at Gitea', { gitea: true, kubernetes: false }, (lab) => {
  const gitea = new Gitea(lab.gitea);
  let server: CiServer;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const { url, token } = gitea.access;
    ({ server, close } = ciServerOf({
      server: 'gitea',
      type: 'pat',
      tokenProvider: () => token,
      apiUrl: `${url}/api/v1`,
    }));
  });
  afterAll(async () => {
    await gitea.clear();
    await close();
  });
  beforeEach(async () => await gitea.clear());

  const request = (more: Partial<RegisterRequest> = {}): RegisterRequest => ({
    scope: ORGANIZATION,
    name: 'r-1',
    labels: ['x64'],
    group: 'default',
    ephemeral: true,
    mode: 'jit',
    ...more,
  });

  test('the runner gets its own credentials and no token of the scope', async () => {
    const { runnerId, env } = await server.register(request());
    const path = '/orgs/acme/actions/runners/registration-token';
    const { token } = await gitea.api<{ token: string }>('POST', path);
    expect(JSON.stringify(env)).not.toContain(token);
    expect(JSON.parse(env['GITEA_RUNNER_FILE'] ?? '')).toMatchObject({
      id: Number(runnerId),
      name: 'r-1',
      address: gitea.access.url,
      labels: ['x64:host'],
      ephemeral: true,
    });
  });

  test('a static runner gets its own credentials, too, and Gitea has it for any number of jobs', async () => {
    const { runnerId, env } = await server.register(request({ mode: 'token', ephemeral: false }));
    const file = { id: Number(runnerId), ephemeral: false };
    expect(JSON.parse(env['GITEA_RUNNER_FILE'] ?? '')).toMatchObject(file);
    const path = `/orgs/acme/actions/runners/${runnerId}`;
    expect(await gitea.api('GET', path)).toMatchObject({ ephemeral: false });
  });

  test('every page of a list is read, also by name', async () => {
    for (let n = 1; n <= MANY; n++)
      await server.register(request({ scope: REPOSITORY, name: `r-${n}` }));
    const names = (await server.listRunners(REPOSITORY)).map(({ name }) => name);
    expect(new Set(names).size).toBe(MANY);
    for (const name of ['r-1', `r-${MANY}`])
      expect(await server.findRunner(REPOSITORY, { name })).toMatchObject({ name, online: false });
  });

  test('a runner of another scope is not found', async () => {
    const { runnerId = '' } = await server.register(request());
    expect(await server.findRunner(REPOSITORY, { id: runnerId, name: 'r-1' })).toBeUndefined();
    expect(await server.removeRegistration(REPOSITORY, runnerId)).toBe('absent');
    expect(await gitea.runners('/orgs/acme')).toHaveLength(1);
  });

  test.each<[Scope, permissions: string[]]>([
    [ORGANIZATION, ['write:organization']],
    [REPOSITORY, ['write:repository']],
    [{ kind: 'organization', name: 'tester' }, ['write:user', 'read:organization']],
    [{ kind: 'enterprise', name: 'instance' }, ['write:admin']],
  ])('the permissions in docs/gitea.md are sufficient: %j %j', async (scope, permissions) => {
    await gitea.tokens();
    const token = await gitea.token(permissions);
    const apiUrl = `${gitea.access.url}/api/v1`;
    const own = ciServerOf({ server: 'gitea', type: 'pat', tokenProvider: () => token, apiUrl });
    const { runnerId = '' } = await own.server.register(request({ scope }));
    expect(await own.server.listRunners(scope)).toHaveLength(1);
    expect(await own.server.listQueuedJobs?.(scope)).toEqual({ jobs: [], complete: true });
    expect(await own.server.removeRegistration(scope, runnerId)).toBe('removed');
    await own.close();
  });

  describe('are rejected before anything is registered for', () => {
    test.each<[what: string, more: Partial<RegisterRequest>]>([
      ['a label with a way to run the job', { labels: ['x64:docker://alpine'] }],
      ['an enterprise', { scope: { kind: 'enterprise', name: 'big' } }],
    ])('%s', async (_what, more) => {
      const error = await ciServerError(server.register(request(more)));
      expect(error.kind).toBe('rejected');
      expect(await gitea.runners()).toEqual([]);
    });
  });
});
