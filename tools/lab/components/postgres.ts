import { execFile } from 'node:child_process';
import {
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { port, type Component, type Lab } from '../component.ts';
import { exists } from '../kubernetesFiles.ts';
import { acceptsConnections } from '../probe.ts';
import { waitFor, type User } from '../process.ts';

const run = promisify(execFile);

const dataFolder = (lab: Lab): string => join(lab.dir, 'postgres');

/** Of the database's owner. */
export const postgresAccess = (
  lab: Lab,
): { host: string; port: number; user: string; password: string } => ({
  host: '127.0.0.1',
  port: port(lab, 'postgres'),
  user: 'temporal',
  password: lab.record.tokens.admin,
});

/** The account that runs PostgreSQL if the lab runs as root: PostgreSQL refuses to run as root. */
const ACCOUNT = 'postgres';

export const postgres: Component = {
  name: 'postgres',
  binaries: ['postgres'],
  ports: ['postgres'],
  after: [],
  async prepare(lab) {
    await untilAlone(lab);
    if (!(await exists(join(dataFolder(lab), 'PG_VERSION')))) await initialize(lab);
  },
  async command(lab) {
    const user = await account();
    return {
      args: [
        '-D', dataFolder(lab),
        '-p', String(port(lab, 'postgres')),
        ...Object.entries({
          listen_addresses: '127.0.0.1',
          unix_socket_directories: '',
          max_connections: 200,
          shared_buffers: '256MB',
          max_wal_size: '4GB',
          // Survives the death of the process, not of the machine: enough here, and much faster.
          fsync: 'off',
          synchronous_commit: 'off',
          full_page_writes: 'off',
        }).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      ...(user && { user }),
    }; // prettier-ignore
  },
  healthy: (lab) => acceptsConnections({ port: port(lab, 'postgres') }),
  // It takes connections before it answers any.
  ready: async (lab) => await run(await program(lab, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port(lab, 'postgres'))]).then(() => true, () => false), // prettier-ignore
  readyWithinMs: 60_000,
  stop: { signal: 'SIGINT', withinMs: 15_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};

/** One of the programs that come with the server. */
async function program(lab: Lab, name: string): Promise<string> {
  return join(dirname(await realpath(lab.binaries.postgres ?? '')), name);
}

/** `undefined`: the one that this process runs as. */
async function account(): Promise<User | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const id = async (flag: string): Promise<number> =>
    Number((await run('id', [flag, ACCOUNT])).stdout);
  try {
    return { uid: await id('-u'), gid: await id('-g') };
  } catch (error) {
    throw new Error(
      `PostgreSQL does not run as root, and this machine has no user "${ACCOUNT}": apt-get install postgresql, or run the lab as another user`,
      { cause: error },
    );
  }
}

/** Creates an empty database server whose owner has a password. */
async function initialize(lab: Lab): Promise<void> {
  const folder = dataFolder(lab);
  const passwordFile = `${folder}.password`;
  const owner = await account();
  await rm(folder, { recursive: true, force: true }); // what an interrupted one left
  await mkdir(folder, { mode: 0o700 });
  const { user, password } = postgresAccess(lab);
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (owner) for (const path of [folder, passwordFile]) await chown(path, owner.uid, owner.gid);
  try {
    await run(
      await program(lab, 'initdb'),
      [
        '-D',
        folder,
        '--username',
        user,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        '--no-sync',
      ],
      { cwd: '/', ...owner },
    );
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    throw new Error(
      `PostgreSQL's data cannot be made in ${folder}: ${stderr.trim() || message}\nfix: the user ${owner ? ACCOUNT : 'that runs this'} must be able to enter ${dirname(folder)}; else choose another folder with --state-dir`,
      { cause: error },
    );
  } finally {
    await rm(passwordFile);
  }
}

/**
 * Waits until the processes of a killed server have ended, because another server cannot start
 * before.
 */
async function untilAlone(lab: Lab): Promise<void> {
  if (process.platform !== 'linux') return;
  const alone = await waitFor(async () => {
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (
        command.startsWith('postgres: ') &&
        (await readlink(`/proc/${pid}/cwd`).catch(() => '')) === dataFolder(lab)
      )
        return false;
    }
    return true;
  }, 10_000);
  if (!alone) throw new Error(`processes of an earlier PostgreSQL still use ${dataFolder(lab)}`);
}
