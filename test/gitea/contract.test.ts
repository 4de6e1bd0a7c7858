import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ciServerContract, type CiServerFixture } from '../support/ciServerContract.ts';
import { ciServerOf } from '../support/ciServers.ts';
import { Gitea, type GiteaTokens } from '../support/gitea.ts';
import { FailingProxy } from '../support/giteaProxy.ts';
import { GiteaRunnerProcess } from '../support/giteaRunner.ts';
import { describeWithLab } from '../support/lab.ts';
import { untilSeen } from '../support/until.ts';
import type { LabState } from '../../tools/lab/options.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const ORGANIZATION: Scope = { kind: 'organization', name: 'acme' };
const REPOSITORY: Scope = { kind: 'repository', name: 'acme/app' };
/** The user whose tokens they are. */
const USER: Scope = { kind: 'organization', name: 'tester' };
const INSTANCE: Scope = { kind: 'enterprise', name: 'instance' };

/** Where Gitea's REST API has a scope's runners. */
function pathOf({ kind, name }: Scope): string {
  if (kind === 'enterprise') return '/admin';
  if (kind === 'repository') return `/repos/${name}`;
  return name === USER.name ? '/user' : `/orgs/${name}`;
}

function repositoryOf(scope: Scope): string {
  if (scope === USER) return 'tester/own';
  return scope.kind === 'repository' ? scope.name : 'acme/app';
}

/** A token that Gitea has never issued. */
const UNKNOWN_TOKEN = '0'.repeat(40);

let tokens: GiteaTokens | undefined;

async function fixtureOf(lab: LabState): Promise<CiServerFixture> {
  const gitea = new Gitea(lab.gitea);
  const known = (tokens ??= await gitea.tokens());
  await gitea.clear();
  const proxy = await FailingProxy.start(gitea.access.url);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-gitea-jobs-'));
  let token = known.all;
  const { server, close } = ciServerOf({
    server: 'gitea',
    type: 'pat',
    tokenProvider: () => token,
    apiUrl: `${proxy.url}/api/v1`,
    webUrl: gitea.access.url,
  });
  const runners: GiteaRunnerProcess[] = [];
  return {
    server,
    async registered(scope) {
      const path = `${pathOf(scope)}/actions/runners`;
      const list = await gitea.api<{ runners: { name: string }[] }>('GET', path, undefined, `token ${known.all}`); // prettier-ignore
      return list.runners.map(({ name }) => name);
    },
    async startRunner(request, registration) {
      runners.push(await GiteaRunnerProcess.start(registration.env));
      const seen = await untilSeen(
        `${request.name} online`,
        async () => (await gitea.runners()).find(({ name }) => name === request.name),
        (runner) => runner?.status === 'online',
      );
      return String(seen?.id);
    },
    async startJob(scope, label) {
      const repository = repositoryOf(scope);
      const end = join(folder, label);
      // A failed test removes the folder: nobody else ends the job, which has a session of its own.
      const script = `while [ -d ${folder} ] && [ ! -e ${end} ]; do sleep 0.1; done`;
      const { id } = await gitea.queueJob(repository, [label], script);
      await gitea.waitForJob(repository, id, 'in_progress');
      return {
        running: async () => (await gitea.job(repository, id)).status === 'in_progress',
        async finish() {
          await writeFile(end, '');
          await gitea.waitForJob(repository, id, 'completed');
        },
      };
    },
    async queueJob(scope, labels) {
      const { id, run_id: run } = await gitea.queueJob(repositoryOf(scope), labels);
      return {
        id: String(id),
        cancel: async () => await gitea.cancelRun(repositoryOf(scope), run),
      };
    },
    loseScopes: async () => void (token = known.outsider),
    loseWrite: async () => void (token = known.look),
    revoke: async () => void (token = UNKNOWN_TOKEN),
    limit: () => Promise.reject(new Error('Gitea has no limits')),
    fail: async (how) => proxy.fail(how),
    requestCount: () => Promise.reject(new Error('only for limits')),
    async close() {
      await Promise.all(runners.map(async (runner) => await runner.stop()));
      await close();
      proxy.close();
      await gitea.clear();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

await describeWithLab('Gitea', { gitea: true, kubernetes: false }, (lab) => {
  ciServerContract(
    'Gitea',
    {
      scopes: [ORGANIZATION, REPOSITORY, USER, INSTANCE],
      modes: ['jit', 'token'],
      limits: [],
      revocable: true,
      uniqueNames: true,
      exactLabels: true,
      jobs: true,
    },
    () => fixtureOf(lab),
  );
});
