import { generateKeyPairSync } from 'node:crypto';
import { scopePath } from '../../activities/ciServers/github/addresses.ts';
import { type Simulator, startSimulator } from '../../tools/simulator/simulator.ts';
import { ciServerContract, type CiServerFixture } from '../support/ciServerContract.ts';
import { ciServerOf } from '../support/ciServers.ts';
import { WireRunner } from '../support/wireRunner.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const ORGANIZATION: Scope = { kind: 'organization', name: 'acme' };
const REPOSITORY: Scope = { kind: 'repository', name: 'acme/web' };
const ENTERPRISE: Scope = { kind: 'enterprise', name: 'big' };

const TOKEN = 'ghp_contract';
const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
});
process.env['HOLDFAST_CONTRACT_TOKEN'] = TOKEN;
process.env['HOLDFAST_CONTRACT_KEY'] = keys.privateKey;

const LIMITS: Record<string, (simulator: Simulator) => void> = {
  'primary limit': (simulator) => simulator.addFault({ kind: 'primary_limit' }),
  'primary limit as 429': (simulator) => simulator.addFault({ kind: 'primary_limit', status: 429 }),
  'secondary limit': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit', retryAfterS: 60 }),
  'secondary limit that does not say how long': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit' }),
  'secondary limit as 429': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit', status: 429 }),
  'secondary limit in its older form': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit', form: 'secondary' }),
  'secondary limit as abuse': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit', form: 'abuse' }),
  'secondary limit on content creation': (simulator) =>
    simulator.addFault({ kind: 'secondary_limit', form: 'content' }),
};

/** @param name of the credential inside the simulator @param apiPath `/api/v3` on GitHub Enterprise Server */
async function fixtureOf(
  credential: Record<string, unknown>,
  name: string,
  apiPath = '',
): Promise<CiServerFixture> {
  const simulator = await startSimulator({
    tokens: [{ token: TOKEN, name: 'contract' }],
    apps: [{ id: 12, publicKey: keys.publicKey, installations: [{ id: 34, account: 'acme' }] }],
  });
  const { server, close } = ciServerOf({ ...credential, apiUrl: `${simulator.url}${apiPath}` });
  const runners: WireRunner[] = [];
  return {
    server,
    registered: async (scope) =>
      simulator
        .runners()
        .filter((runner) => runner.scope === scopePath(scope))
        .map((runner) => runner.name),
    async startRunner(request, registration) {
      const { runner, id } = await WireRunner.start(simulator.url, registration);
      runners.push(runner);
      await simulator.waitFor(
        () => simulator.runner(request.name)?.status === 'online',
        `${request.name} online`,
      );
      return String(id);
    },
    async startJob(scope, label) {
      const { id } = simulator.queueJob({
        repo: scope.kind === 'repository' ? scope.name : 'acme/web',
        labels: [label],
      });
      await simulator.waitForJob(id, 'in_progress');
      return {
        running: async () => simulator.job(id)?.status === 'in_progress',
        finish: async () => {
          await runners[0]?.finish();
          await simulator.waitForJob(id, 'completed');
        },
      };
    },
    async queueJob(scope, labels) {
      const { id } = simulator.queueJob({
        repo: scope.kind === 'repository' ? scope.name : 'acme/web',
        labels,
      });
      return { id: String(id), cancel: async () => void simulator.cancelJob(id) };
    },
    loseScopes: async () => simulator.setAccess(name, { scopes: [] }),
    loseWrite: async () => simulator.setAccess(name, { permission: 'read' }),
    revoke: async () => simulator.revokeToken(TOKEN),
    limit: async (title) => LIMITS[title]?.(simulator),
    fail: async (how) =>
      void simulator.addFault(
        how === 'status' ? { kind: 'status', status: 502 } : { kind: 'drop' },
      ),
    requestCount: async () => simulator.requests().length,
    async close() {
      for (const runner of runners) runner.stop();
      await close();
      await simulator.stop();
    },
  };
}

const common = {
  modes: ['jit', 'token'],
  limits: Object.keys(LIMITS),
  uniqueNames: true,
  jobs: true,
} as const;

ciServerContract(
  'GitHub with a personal access token',
  { ...common, revocable: true, scopes: [ORGANIZATION, REPOSITORY, ENTERPRISE] },
  () => fixtureOf({ type: 'pat', tokenEnv: 'HOLDFAST_CONTRACT_TOKEN' }, 'contract'),
);

ciServerContract(
  'GitHub Enterprise Server with an App',
  { ...common, revocable: false, scopes: [ORGANIZATION, REPOSITORY] },
  () =>
    fixtureOf(
      { type: 'app', appId: 12, installationId: 34, privateKeyEnv: 'HOLDFAST_CONTRACT_KEY' },
      'app-12-34',
      '/api/v3',
    ),
);
