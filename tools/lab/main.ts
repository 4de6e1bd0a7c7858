/** Starts, stops and inspects the lab: `npm run lab -- up|down|status|fetch`. */
import { Option } from 'commander';
import { createCommand, runCommand, startProgress, tcpPort } from '../shared/commandLine.ts';
import {
  down,
  status,
  TEMPORAL_SERVERS,
  up,
  type LabOptions,
  type LabState,
  type LabStatus,
  type TemporalServer,
} from './lab.ts';
import { ComponentUnavailableError } from './options.ts';
import { resolveBinary } from './resolve.ts';
import { DEFAULT_STATE_DIR } from './store.ts';
import { BINARIES, type BinaryName } from './versions.ts';

const PARTS = ['temporal', 'kubernetes'] as const;
/** Binaries that only `npm run compose-check` and `npm run beside-arc` use. */
const BY_HAND: readonly string[] = ['docker-compose', 'temporal-ui', 'actions-runner-controller'];

interface CommonFlags {
  stateDir: string;
  json?: true;
}
interface UpFlags extends CommonFlags {
  nodes?: 'none' | 'kubelet' | 'kwok';
  only?: (typeof PARTS)[number];
  temporal?: false | TemporalServer;
  kubernetes: boolean;
  s3?: true;
  gitea?: true;
  temporalPort?: number;
  uiPort?: number;
}

const stateDir = (): Option =>
  new Option('--state-dir <folder>', 'data, logs and process records')
    .default(DEFAULT_STATE_DIR)
    .env('HOLDFAST_LAB_DIR');
const json = (): Option => new Option('--json', 'print the result as one JSON object on stdout');

const program = createCommand(
  'npm run lab --',
  'Runs the real components on this machine: Temporal with its UI, and a Kubernetes cluster with real or fake nodes.',
).addHelpText(
  'after',
  `
Each component is taken from the first of: HOLDFAST_<COMPONENT>_BIN, PATH, the cache (~/.cache/holdfast), official download, wheel,
build from Go modules (needs Go; takes some minutes, once).

Exit status: 0 success; 1 failure; 3 (status) a component does not run or is unhealthy.

Examples:
  npm run lab -- up                          Temporal and a control plane without nodes
  npm run lab -- up --nodes kubelet          this machine becomes a node (Linux, root)
  npm run lab -- up --only temporal
  npm run lab -- up --temporal cluster       needs PostgreSQL (apt-get install postgresql)
  KUBECONFIG=.holdfast/lab/kubeconfig kubectl get pods -A
  npm run lab -- down --purge`,
);

program
  .command('up')
  .description('Start the missing and the ended components; keep those that run, and all data')
  .addOption(
    new Option(
      '--nodes <kind>',
      'add nodes; a cluster keeps those it has (default: "none")',
    ).choices(['none', 'kubelet', 'kwok']),
  )
  .addOption(new Option('--only <part>', 'start only this part (default: both)').choices(PARTS))
  .addOption(
    new Option(
      '--temporal <server>',
      'Temporal server: the dev server, or a cluster of one process per service on PostgreSQL (default: the one the lab has, otherwise "dev")',
    ).choices(TEMPORAL_SERVERS),
  )
  .option('--no-temporal', 'do not start Temporal')
  .option('--no-kubernetes', 'do not start Kubernetes')
  .option('--s3', 'add an S3 server')
  .option('--gitea', 'add a Gitea server with an organization, a repository and a token')
  .addOption(
    new Option(
      '--temporal-port <port>',
      'port of Temporal on 127.0.0.1 (default: a free one, the same on each start)',
    ).argParser(tcpPort),
  )
  .addOption(
    new Option(
      '--ui-port <port>',
      "port of Temporal's UI on 127.0.0.1 (default: a free one, the same on each start)",
    ).argParser(tcpPort),
  )
  .addOption(stateDir())
  .addOption(json())
  .action(async (flags: UpFlags) => {
    const options: LabOptions = {
      stateDir: flags.stateDir,
      temporal: flags.only === 'kubernetes' ? false : (flags.temporal ?? true),
      kubernetes: flags.kubernetes && flags.only !== 'temporal',
      ...(flags.nodes === undefined ? {} : { nodes: flags.nodes }),
      s3: flags.s3 === true,
      gitea: flags.gitea === true,
      ...(flags.temporalPort === undefined ? {} : { temporalPort: flags.temporalPort }),
      ...(flags.uiPort === undefined ? {} : { uiPort: flags.uiPort }),
      progress: startProgress(),
    };
    const state = await up(options);
    console.log(flags.json ? JSON.stringify(state) : describe(state));
  });

program
  .command('down')
  .description('Stop all components; leaves no process, mount, network namespace or cgroup')
  .option('--purge', "also delete all data (Temporal's database, etcd, images); the logs stay")
  .addOption(stateDir())
  .addOption(json())
  .action(async (flags: CommonFlags & { purge?: true }) => {
    await down({
      stateDir: flags.stateDir,
      purge: flags.purge === true,
      progress: startProgress(),
    });
    if (flags.json) console.log(JSON.stringify({ down: true }));
  });

program
  .command('status')
  .description('Show the components of the lab and their state')
  .addOption(stateDir())
  .addOption(json())
  .action(async (flags: CommonFlags) => {
    const lab = await status({ stateDir: flags.stateDir });
    console.log(flags.json ? JSON.stringify(lab) : describeStatus(lab));
    if (Object.values(lab.components).some(({ state }) => state !== 'healthy'))
      process.exitCode = 3;
  });

program
  .command('fetch')
  .description('Download or build missing components, one after the other')
  .argument(
    '[component...]',
    `components to fetch: ${Object.keys(BINARIES).join(', ')} (default: all that the tests use)`,
  )
  .action(async (names: string[]) => {
    const unknown = names.filter((name) => !(name in BINARIES));
    if (unknown.length > 0)
      throw new Error(
        `unknown component ${unknown.join(', ')}; "npm run lab -- fetch --help" lists them`,
      );
    const wanted = (
      names.length > 0 ? names : Object.keys(BINARIES).filter((name) => !BY_HAND.includes(name))
    ) as BinaryName[];
    const missing: string[] = [];
    const progress = startProgress();
    for (const name of wanted) {
      try {
        console.log(`${name.padEnd(24)} ${await resolveBinary(name, { progress })}`);
      } catch (error) {
        if (!(error instanceof ComponentUnavailableError)) throw error;
        missing.push(error.message);
      }
    }
    if (missing.length > 0) throw new Error(missing.join('\n'));
  });

function describe(state: LabState): string {
  return [
    ...(state.temporal
      ? [`Temporal    ${state.temporal.address}   (namespace ${state.temporal.namespace})`]
      : []),
    ...(state.temporal?.uiUrl === undefined ? [] : [`Temporal UI ${state.temporal.uiUrl}`]),
    ...(state.kubernetes
      ? [`Kubernetes  ${state.kubernetes.server}`, `kubeconfig  ${state.kubernetes.kubeconfig}`]
      : []),
    ...(state.s3 ? [`S3          ${state.s3.endpoint}   (its buckets: ${state.s3.folder})`] : []),
    ...(state.gitea
      ? [`Gitea       ${state.gitea.url}   (repository acme/app, token ${state.gitea.token})`]
      : []),
    ...(state.nodes ? [`nodes       ${state.nodes}`] : []),
    ...(state.hostAddress
      ? [`host        ${state.hostAddress}   (this machine, as pods reach it)`]
      : []),
    `state       ${state.stateDir}`,
  ].join('\n');
}

function describeStatus(lab: LabStatus): string {
  const components = Object.entries(lab.components);
  if (components.length === 0) return `no lab is up in ${lab.stateDir}`;
  return [
    ...components.map(
      ([name, { state, pid, log }]) =>
        `${name.padEnd(24)} ${state.padEnd(10)} ${String(pid ?? '-').padEnd(8)} ${log}`,
    ),
    '',
    describe(lab),
  ].join('\n');
}

await runCommand(program);
