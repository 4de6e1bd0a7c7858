import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { port, type Component, type Lab } from '../component.ts';
import { exists } from '../kubernetesFiles.ts';
import type { ComponentName } from '../options.ts';
import { freePort } from '../ports.ts';
import { acceptsConnections } from '../probe.ts';
import { writeRecord } from '../store.ts';
import { reachesHistories, servesNamespace, temporalAddress } from '../temporalNamespace.ts';
import { postgresAccess } from './postgres.ts';
import { DYNAMIC_CONFIG } from './temporal.ts';

/**
 * The services in the order of their start. The frontend starts before the history service, so that
 * the latter knows the namespace and its search attributes from the start.
 */
const SERVICES = ['matching', 'frontend', 'history', 'worker'] as const;
type Service = (typeof SERVICES)[number];

/** Number of history shards. It cannot be changed later. */
const HISTORY_SHARDS = 64;
/**
 * Settings that the version of the dev server does not have: tests pause workflows where that is
 * supported.
 */
const CLUSTER_CONFIG = { 'frontend.WorkflowPauseEnabled': true };
const DATABASES = { temporal: 'temporal', temporal_visibility: 'visibility' } as const;

const folder = (lab: Lab): string => join(lab.dir, 'temporal-cluster');
const grpcPort = (service: Service): string =>
  service === 'frontend' ? 'temporal' : `temporal-${service}`;
const membershipPort = (service: Service): string => `temporal-${service}-membership`;

export const temporalMatching = component('matching', { prepare: makeSchema });
export const temporalFrontend = component('frontend', { ready: servesNamespace });
export const temporalHistory = component('history', { ready: reachesHistories });
// It serves no client.
export const temporalWorker = component('worker', {
  healthy: (lab) => acceptsConnections({ port: port(lab, membershipPort('worker')) }),
});

/**
 * Returns a component that runs one service of Temporal's server in a process of its own. Services
 * find each other through the list of members in the database.
 */
function component(
  service: Service,
  own: Partial<Pick<Component, 'prepare' | 'healthy' | 'ready'>>,
): Component {
  const mark = `--service=${service}`;
  return {
    name: `temporal-${service}`,
    binaries: ['temporal-server', 'temporal-sql-tool'],
    mark,
    // Given out all together, below: each has the ports of all in its configuration.
    ports: [],
    after: [
      'postgres',
      ...SERVICES.slice(0, SERVICES.indexOf(service)).map(
        (earlier): ComponentName => `temporal-${earlier}`,
      ),
    ],
    command: (lab) => ({
      args: [
        '--root',
        folder(lab),
        '--config',
        'config',
        '--env',
        'lab',
        '--allow-no-auth',
        'start',
        mark,
      ],
    }),
    healthy: (lab) => acceptsConnections({ port: port(lab, grpcPort(service)) }),
    readyWithinMs: 60_000,
    stop: { signal: 'SIGTERM', withinMs: 15_000 },
    fix: 'if another program took one of its ports, or its data is damaged, run `lab down --purge`',
    ...own,
    async prepare(lab) {
      await writeConfig(lab);
      await own.prepare?.(lab);
    },
  };
}

async function writeConfig(lab: Lab): Promise<void> {
  for (const service of SERVICES)
    for (const key of [grpcPort(service), membershipPort(service)])
      lab.record.ports[key] ??= await freePort();
  await writeRecord(lab.dir, lab.record);
  await mkdir(join(folder(lab), 'config'), { recursive: true });
  const dynamicConfig = join(folder(lab), 'dynamic.yaml');
  await writeFile(
    dynamicConfig,
    stringify(
      Object.fromEntries(
        Object.entries({ ...DYNAMIC_CONFIG, ...CLUSTER_CONFIG }).map(([key, value]) => [
          key,
          [{ value }],
        ]),
      ),
    ),
  );
  await writeFile(
    join(folder(lab), 'config', 'lab.yaml'),
    stringify(configuration(lab, dynamicConfig)),
    { mode: 0o600 },
  );
}

/** As Temporal's own config/development-postgres12.yaml has it. */
function configuration(lab: Lab, dynamicConfig: string): object {
  const { host, port: postgresPort, user, password } = postgresAccess(lab);
  const store = (databaseName: keyof typeof DATABASES, connections: number): object => ({
    sql: {
      pluginName: 'postgres12',
      databaseName,
      connectAddr: `${host}:${postgresPort}`,
      connectProtocol: 'tcp',
      user,
      password,
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: '1h',
    },
  });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: HISTORY_SHARDS,
      datastores: { default: store('temporal', 30), visibility: store('temporal_visibility', 10) },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: Object.fromEntries(
      SERVICES.map((service) => [
        service,
        {
          rpc: {
            grpcPort: port(lab, grpcPort(service)),
            membershipPort: port(lab, membershipPort(service)),
            bindOnLocalHost: true,
          },
        },
      ]),
    ),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: temporalAddress(lab),
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    dynamicConfigClient: { filepath: dynamicConfig, pollInterval: '1m' },
  };
}

/** Creates both databases with their tables, once per lab. Each step is idempotent. */
async function makeSchema(lab: Lab): Promise<void> {
  const done = join(folder(lab), 'schema');
  if (await exists(done)) return;
  const tool = lab.binaries['temporal-sql-tool'] ?? '';
  const { host, port: postgresPort, user, password } = postgresAccess(lab);
  const run = promisify(execFile);
  await Promise.all(
    Object.entries(DATABASES).map(async ([database, schema]) => {
      for (const step of [
        ['create-database'],
        ['setup-schema', '--version', '0.0'],
        ['update-schema', '--schema-name', `postgresql/v12/${schema}`],
      ]) {
        await run(
          tool,
          [
            '--plugin',
            'postgres12',
            '--endpoint',
            host,
            '--port',
            String(postgresPort),
            '--user',
            user,
            '--database',
            database,
            ...step,
          ],
          { env: { SQL_PASSWORD: password } },
        );
      }
    }),
  );
  await writeFile(done, '');
}
