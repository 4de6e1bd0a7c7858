/**
 * The images that docker-compose.yml and the Dockerfiles build on, made of this machine's programs under the names and tags that are written there, for where none can be pulled. What runs
 * in them is real (Debian, Node, Temporal's server, its tools and UI, PostgreSQL), of the versions that are here; how the published images start it is told again below.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  cp,
  mkdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { addProgram } from '../../../tools/lab/images/rootfs.ts';
import { resolveBinary } from '../../../tools/lab/resolve.ts';
import { BINARIES } from '../../../tools/lab/versions.ts';
import { PROJECT, withoutDigests, type Engine } from './engine.ts';
import { progress } from './tell.ts';

const run = promisify(execFile);
/** What this machine trusts, for npm in the builds. Not where the system's own are: the published images have none there. */
const CERTIFICATES = '/usr/local/share/machine-certificates.crt';

interface BaseImage {
  readonly reference: string;
  /** Lines of a Dockerfile. */
  readonly config: readonly string[];
  fill(root: string): Promise<void>;
}

/** Makes those that the engine has not. @param folder - for what is slow to make, which stays there */
export async function makeBaseImages(engine: Engine, folder: string): Promise<void> {
  for (const image of await baseImages(folder)) {
    const { reference, config } = image;
    if (await engine.has(reference)) continue;
    progress(`making ${reference}`);
    const root = join(folder, 'root');
    await rm(root, { recursive: true, force: true });
    await mkdir(root, { recursive: true });
    await image.fill(root);
    const { stderr } = await engine.run('sh', [
      '-c',
      'tar -C "$1" -c . | { shift; docker import "$@"; }',
      'import',
      root,
      ...config.flatMap((line) => ['--change', line]),
      '-',
      reference,
    ]);
    if (!(await engine.has(reference))) throw new Error(`${reference} was not made: ${stderr}`);
    await rm(root, { recursive: true });
  }
}

async function baseImages(folder: string): Promise<BaseImage[]> {
  const { services } = parse(await readFile(join(PROJECT, 'docker-compose.yml'), 'utf8')) as {
    services: Record<string, { image: string }>;
  };
  const image = (service: string): string => services[service]?.image ?? '';
  const base = async (dockerfile: string, name: string): Promise<string> =>
    new RegExp(`^FROM (${name}\\S*)`, 'm').exec(
      withoutDigests(await readFile(join(PROJECT, 'deploy/images', dockerfile), 'utf8')),
    )?.[1] ?? '';
  const modules = (await run('go', ['env', 'GOMODCACHE'])).stdout.trim();
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return [
    {
      reference: await base('worker.Dockerfile', 'debian:'),
      config: [path],
      fill: async (root) => await fillDebian(root, folder),
    },
    {
      reference: await base('worker.Dockerfile', 'node:'),
      config: [path, `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`],
      fill: async (root) => await fillNode(root, folder),
    },
    {
      reference: await base('supervisor.Dockerfile', 'busybox:'),
      config: ['CMD ["sh"]'],
      fill: addShell,
    },
    {
      reference: await base('runner.Dockerfile', 'ghcr.io/'),
      config: ['USER 1001', 'WORKDIR /home/runner'],
      fill: fillRunner,
    },
    {
      reference: image('temporal'),
      config: [
        'USER 1000',
        'WORKDIR /home/temporal',
        'ENTRYPOINT ["temporal"]',
        'VOLUME /home/temporal',
      ],
      fill: fillTemporal,
    },
    {
      reference: image('temporal-schema'),
      config: ['USER 1000'],
      fill: async (root) => await fillAdminTools(root, modules),
    },
    {
      reference: image('temporal-server'),
      config: ['USER 1000', 'WORKDIR /etc/temporal', 'ENTRYPOINT ["/entrypoint.sh"]'],
      fill: async (root) => await fillServer(root, modules),
    },
    {
      reference: image('temporal-ui'),
      config: [
        'USER 1000',
        'WORKDIR /home/ui-server',
        'ENTRYPOINT ["temporal-ui", "--env", "docker", "start"]',
      ],
      fill: async (root) => await fillUi(root, modules),
    },
    {
      reference: image('postgres'),
      config: ['USER 70', 'ENV PGDATA=/var/lib/postgresql/data', 'ENTRYPOINT ["/entrypoint.sh"]'],
      fill: fillPostgres,
    },
  ];
}

/** Busybox with its applets, and users. */
async function addShell(root: string): Promise<void> {
  const busybox = await addTool(root, 'busybox', '/bin/busybox');
  const { stdout } = await run(busybox, ['--list']);
  for (const applet of stdout.split('\n').filter((line) => line !== '' && line !== 'busybox'))
    await symlink('/bin/busybox', join(root, 'bin', applet));
  for (const path of ['etc', 'home/temporal', 'home/runner', 'usr/local/bin', 'usr/bin'])
    await mkdir(join(root, path), { recursive: true });
  await mkdir(join(root, 'tmp'), { recursive: true });
  await chmod(join(root, 'tmp'), 0o1777);
  await symlink('/bin/busybox', join(root, 'usr/bin/env'));
  await writeFile(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\npostgres:x:70:70::/var/lib/postgresql:/bin/sh\ntemporal:x:1000:1000::/home/temporal:/bin/sh\nrunner:x:1001:1001::/home/runner:/bin/sh\n',
  );
  await writeFile(
    join(root, 'etc/group'),
    'root:x:0:\npostgres:x:70:\ntemporal:x:1000:\nrunner:x:1001:\n',
  );
}

async function addTool(root: string, name: string, at: string): Promise<string> {
  const { stdout } = await run('sh', ['-c', `command -v ${name}`]);
  await addProgram(root, stdout.trim(), at);
  return stdout.trim();
}

/** A Go program of the lab's; they are static. */
async function addGo(root: string, name: Parameters<typeof resolveBinary>[0]): Promise<void> {
  await mkdir(join(root, 'usr/local/bin'), { recursive: true });
  await copyFile(await resolveBinary(name, { progress }), join(root, 'usr/local/bin', name));
}

/** The least that has APT, without what Debian's `slim` leaves out as well. */
async function fillDebian(root: string, folder: string): Promise<void> {
  const debian = join(folder, 'debian');
  if (!existsSync(debian)) {
    progress('making a Debian (debootstrap)');
    const unfinished = `${debian}.part`;
    await rm(unfinished, { recursive: true, force: true });
    await run(
      'debootstrap',
      ['--variant=minbase', 'bookworm', unfinished, 'http://deb.debian.org/debian'],
      { maxBuffer: 64 * 1024 * 1024 },
    );
    for (const path of [
      'var/cache/apt',
      'var/lib/apt/lists',
      'usr/share/doc',
      'usr/share/man',
      'usr/share/locale',
    ])
      await run('find', [join(unfinished, path), '-type', 'f', '-delete']);
    // As in the published image: APT keeps no packages, and no indexes of its own beside the lists.
    await writeFile(
      join(unfinished, 'etc/apt/apt.conf.d/docker-clean'),
      'APT::Keep-Downloaded-Packages "false";\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n',
    );
    await rename(unfinished, debian);
  }
  await run('cp', ['-a', `${debian}/.`, root]);
}

/** Debian with Node and npm of this machine. */
async function fillNode(root: string, folder: string): Promise<void> {
  await fillDebian(root, folder);
  await copyFile('/etc/ssl/certs/ca-certificates.crt', join(root, CERTIFICATES));
  await addProgram(root, join(PROJECT, 'node_modules/node/bin/node'), '/usr/local/bin/node');
  const npm = dirname(
    dirname((await run('sh', ['-c', 'readlink -f "$(command -v npm)"'])).stdout.trim()),
  );
  await cp(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  for (const name of ['npm', 'npx'])
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name));
  await run('chroot', [root, 'useradd', '--uid', '1000', '--create-home', 'node']);
}

/** The simulator's runner in the place of GitHub's. */
async function fillRunner(root: string): Promise<void> {
  await addShell(root);
  await addTool(root, 'bash', '/bin/bash');
  for (const script of ['config.sh', 'run.sh'])
    await cp(join(PROJECT, 'tools/simulator/runner', script), join(root, 'home/runner', script));
}

async function fillTemporal(root: string): Promise<void> {
  await addShell(root);
  await addGo(root, 'temporal');
  await run('chown', ['-R', '1000:1000', join(root, 'home/temporal')]);
}

async function fillAdminTools(root: string, modules: string): Promise<void> {
  await addShell(root);
  for (const name of ['temporal', 'temporal-sql-tool'] as const) await addGo(root, name);
  await cp(`${serverModule(modules)}/schema`, join(root, 'etc/temporal/schema'), {
    recursive: true,
  });
}

/** With the configuration that Temporal's image has: a template, filled in from the environment. */
async function fillServer(root: string, modules: string): Promise<void> {
  await addShell(root);
  await addGo(root, 'temporal-server');
  await mkdir(join(root, 'etc/temporal/config'), { recursive: true });
  await copyFile(
    `${serverModule(modules)}/config/docker.yaml`,
    join(root, 'etc/temporal/config/docker.yaml'),
  );
  await writeFile(join(root, 'entrypoint.sh'), SERVER_ENTRYPOINT, { mode: 0o755 });
  // That of the published image, Alpine's, only connects with -z, which Debian's does not know.
  await writeFile(
    join(root, 'usr/local/bin/nc'),
    '#!/bin/sh\nshift\nexec busybox nc -w 2 "$@" -e true\n',
    { mode: 0o755 },
  );
}

async function fillUi(root: string, modules: string): Promise<void> {
  await addShell(root);
  await addGo(root, 'temporal-ui');
  await mkdir(join(root, 'home/ui-server/config'), { recursive: true });
  await copyFile(
    `${modules}/github.com/temporalio/ui-server/v2@v${BINARIES['temporal-ui'].version}/config/docker.yaml`,
    join(root, 'home/ui-server/config/docker.yaml'),
  );
}

/** As the published image: whoever listens everywhere has to say where others find it. */
const SERVER_ENTRYPOINT = `#!/bin/sh
set -eu
export BIND_ON_IP="\${BIND_ON_IP:-$(hostname -i)}"
if [ "$BIND_ON_IP" = 0.0.0.0 ]; then export TEMPORAL_BROADCAST_ADDRESS="\${TEMPORAL_BROADCAST_ADDRESS:-$(hostname -i)}"; fi
exec temporal-server --root /etc/temporal --env docker --allow-no-auth start
`;

const serverModule = (modules: string): string =>
  `${modules}/go.temporal.io/server@v${BINARIES['temporal-server'].version}`;

/** As the published image: on an empty folder it makes the user of POSTGRES_USER, with the password. */
async function fillPostgres(root: string): Promise<void> {
  await addShell(root);
  const folder = dirname(await realpath(await resolveBinary('postgres', { progress })));
  await cp(dirname(folder), join(root, dirname(folder)), { recursive: true });
  const share = folder.replace('/lib/', '/share/').replace(/\/bin$/, '');
  await cp(share, join(root, share), { recursive: true });
  for (const name of ['postgres', 'initdb', 'pg_isready']) {
    await addProgram(root, join(folder, name), join(folder, name));
    await symlink(join(folder, name), join(root, 'usr/local/bin', name));
  }
  await cp('/usr/share/zoneinfo', join(root, 'usr/share/zoneinfo'), { recursive: true });
  await mkdir(join(root, 'var/run/postgresql'), { recursive: true });
  await mkdir(join(root, 'var/lib/postgresql/data'), { recursive: true });
  for (const path of ['var/run/postgresql', 'var/lib/postgresql'])
    await run('chown', ['-R', '70:70', join(root, path)]);
  await writeFile(join(root, 'entrypoint.sh'), POSTGRES_ENTRYPOINT, { mode: 0o755 });
}

const POSTGRES_ENTRYPOINT = `#!/bin/sh
set -eu
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  chmod 700 "$PGDATA"
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  initdb -D "$PGDATA" --username "$POSTGRES_USER" --pwfile /tmp/password --auth-host scram-sha-256 --auth-local trust --locale C --encoding UTF8
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
fi
exec postgres -D "$PGDATA" -c 'listen_addresses=*'
`;
