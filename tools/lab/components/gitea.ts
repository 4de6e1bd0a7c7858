import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { port, type Component, type Lab } from '../component.ts';
import { filesFolder } from '../goBuild.ts';
import { exists } from '../kubernetesFiles.ts';
import type { GiteaAccess } from '../options.ts';
import { hostAddress } from '../podNetwork.ts';
import { isOk, request } from '../probe.ts';
import { writeRecord } from '../store.ts';

const run = promisify(execFile);

const USER = 'lab';
const ORGANIZATION = 'acme';
const REPOSITORY = 'app';

const folder = (lab: Lab): string => join(lab.dir, 'gitea');
const settingsFile = (lab: Lab): string => join(folder(lab), 'app.ini');
const url = (lab: Lab, host = '127.0.0.1'): string => `http://${host}:${port(lab, 'gitea')}`;

/** It refuses to run as root without. */
const ENV = { GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT: 'true' };

/** How it is got at, once it has been up. */
export function giteaAccess(lab: Lab): GiteaAccess | undefined {
  const { podNetwork, giteaToken: token } = lab.record;
  if (token === undefined) return undefined;
  return {
    url: url(lab),
    ...(podNetwork !== undefined ? { urlForPods: url(lab, hostAddress(lab.record)) } : {}),
    user: USER,
    token,
  };
}

/** A CI server: Gitea on SQLite. */
export const gitea: Component = {
  name: 'gitea',
  binaries: ['gitea'],
  ports: ['gitea'],
  after: [],
  async prepare(lab) {
    await mkdir(folder(lab), { recursive: true });
    await writeFile(settingsFile(lab), await settings(lab), { mode: 0o600 });
  },
  command: (lab) => ({
    args: ['web', '--config', settingsFile(lab)],
    env: { ...ENV, HOME: folder(lab) },
  }),
  healthy: (lab) => isOk(`${url(lab)}/api/healthz`),
  finish: populate,
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'it needs git in PATH; if its data is damaged, run `lab down --purge`',
};

async function settings(lab: Lab): Promise<string> {
  const files = filesFolder(lab.binaries.gitea ?? '');
  const sections: Record<string, Record<string, string | number | boolean>> = {
    '': { WORK_PATH: folder(lab), RUN_USER: userInfo().username, RUN_MODE: 'prod' },
    server: {
      PROTOCOL: 'http',
      // On all addresses: that of the pods' network may come later.
      HTTP_ADDR: '0.0.0.0',
      HTTP_PORT: port(lab, 'gitea'),
      ROOT_URL: `${url(lab)}/`,
      OFFLINE_MODE: true,
      DISABLE_SSH: true,
      // Published binaries carry these files.
      ...((await exists(files)) && { STATIC_ROOT_PATH: files }),
    },
    database: { DB_TYPE: 'sqlite3', PATH: join(folder(lab), 'gitea.db') },
    security: { INSTALL_LOCK: true, SECRET_KEY: lab.record.tokens.admin },
    service: { DISABLE_REGISTRATION: true, ENABLE_REVERSE_PROXY_AUTHENTICATION: true },
    session: { PROVIDER: 'memory' },
    queue: { TYPE: 'channel' },
    indexer: { ISSUE_INDEXER_TYPE: 'db' },
    webhook: { ALLOWED_HOST_LIST: 'loopback,private' },
    // By default it fails the job of a lost runner after 10 to 15 minutes.
    actions: { ZOMBIE_TASK_TIMEOUT: '45s' },
    'cron.stop_zombie_tasks': { SCHEDULE: '@every 5s' },
    oauth2: { ENABLED: false },
    log: { MODE: 'console', LEVEL: 'warn' },
  };
  return Object.entries(sections)
    .flatMap(([name, values]) => [
      ...(name === '' ? [] : [`[${name}]`]),
      ...Object.entries(values).map(([key, value]) => `${key} = ${value}`),
    ])
    .join('\n');
}

/** Creates the administrator with a token, the organization and its repository. */
async function populate(lab: Lab): Promise<void> {
  lab.record.giteaToken ??= await administratorsToken(lab);
  await writeRecord(lab.dir, lab.record);
  const post = async (path: string, body: object): Promise<void> => {
    const token = lab.record.giteaToken ?? '';
    const answer = await request(`${url(lab)}/api/v1${path}`, { method: 'POST', token, body });
    // 409 and 422: created by an earlier start.
    if (answer === undefined || ![201, 409, 422].includes(answer.status))
      throw new Error(`gitea: POST ${path}: ${answer?.status} ${answer?.body}`);
  };
  await post('/orgs', { username: ORGANIZATION });
  const repository = { name: REPOSITORY, auto_init: true, default_branch: 'main' };
  await post(`/orgs/${ORGANIZATION}/repos`, repository);
}

async function administratorsToken(lab: Lab): Promise<string> {
  const env = { ...process.env, ...ENV, HOME: folder(lab) };
  const admin = async (command: string, flags: Record<string, string>): Promise<string> => {
    const all = Object.entries({ ...flags, config: settingsFile(lab) });
    const args = all.map(([name, value]) => `--${name}=${value}`);
    return (await run(lab.binaries.gitea ?? '', ['admin', 'user', command, ...args], { env }))
      .stdout;
  };
  const email = `${USER}@lab.invalid`;
  if (!(await admin('list', {})).includes(email))
    await admin('create', {
      username: USER,
      email,
      password: lab.record.tokens.admin,
      admin: 'true',
      'must-change-password': 'false',
    });
  const printed = await admin('generate-access-token', {
    username: USER,
    'token-name': `lab-${Date.now()}`,
    scopes: 'all',
    raw: 'true',
  });
  // As root it prints a warning first.
  return printed.trim().split('\n').at(-1) ?? '';
}
