/** The uploader beside a real supervisor, as two containers of a pod are: the network and some folders are all that they share. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { bundleUploader } from '../../deploy/images/supervisorFolder.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { handles, SupervisedProcess, supervisorBundle } from '../support/supervisedProcess.ts';
import { until } from '../support/until.ts';

const bundle = await supervisorBundle();
const uploader = join(bundle.folder, 'uploader.mjs');
await bundleUploader(uploader);
afterAll(() => bundle.remove());

interface Said {
  readonly pid: number;
  /** When it has ended: its status, and its one line. */
  readonly end: Promise<{ code: number | null; line: unknown }>;
}

/** Only root may start a process of another user. */
const OWN_UID = process.getuid?.() ?? 0;

type User = { uid: number; gid: number };

function startUploader(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  as?: User,
): Said {
  const child = spawn(process.execPath, [uploader, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...as,
  });
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()));
  return {
    pid: child.pid ?? 0,
    end: once(child, 'close').then(() => ({
      code: child.exitCode,
      line: JSON.parse(text) as unknown,
    })),
  };
}

/** Folders of a step, and what both are told of them. */
async function step() {
  const root = mkdtempSync(join(bundle.folder, 'step-'));
  const [store, records, artifacts, shared, secrets] = [
    'store',
    'records',
    'artifacts',
    'shared',
    'secrets',
  ].map((name) => join(root, name)) as [string, string, string, string, string];
  for (const each of [store, records, artifacts, shared, secrets]) mkdirSync(each);
  const port = String(await freePort());
  const dirs = { ARTIFACT_DIR: artifacts, SHARED_DIR: shared };
  return {
    root,
    store,
    artifacts,
    shared,
    secrets,
    started: join(records, 'started.json'),
    env: {
      ...dirs,
      HOLDFAST_UPLOAD_DIRECTORY: store,
      HOLDFAST_UPLOAD_TO: 'run/step/1/',
      HOLDFAST_UPLOAD_SHARED_KEY: 'shared/step.json',
      HOLDFAST_UPLOAD_RECORDS: records,
      HOLDFAST_UPLOAD_SECRETS: secrets,
      HOLDFAST_UPLOAD_TIMEOUT: '20s',
      HOLDFAST_PROBE_PORT: port,
    },
    records,
    run: (script: string, { as, options = [] }: { as?: User; options?: string[] } = {}) =>
      new SupervisedProcess(
        bundle.file,
        'bare',
        [
          '--probe-port',
          port,
          '--start-file',
          join(records, 'started.json'),
          '--marker',
          join(records, 'finished.json'),
          '--shared-dir',
          shared,
          '--shared-snapshots',
          records,
          ...options,
          '--',
          'sh',
          '-c',
          script,
        ],
        dirs,
        as,
      ).reading(),
    kept: (path: string) => readFileSync(join(store, path), 'utf8'),
    files: () =>
      readdirSync(store, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
        .toSorted(),
  };
}

describe('next to a step', () => {
  test('stopped together with it: the step uses its grace period, and its artifacts are stored without secrets', async () => {
    const { secrets, env, run, kept, files } = await step();
    writeFileSync(join(secrets, 'password'), 'hunter22\n');
    const supervised = run(
      'trap \'echo "saved with hunter22" >"$ARTIFACT_DIR/state.txt"; echo c-1 >"$SHARED_DIR/cluster"; exit 7\' TERM; echo up; while :; do sleep 0.05; done',
      { options: ['--signal-target', 'process'] },
    );
    const uploading = startUploader([], env);
    await supervised.printed('up');
    await until("the uploader's handlers", () => handles(uploading.pid, 1));
    process.kill(uploading.pid, 'SIGTERM');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(7);
    expect(await uploading.end).toEqual({ code: 0, line: { end: 'stored', skippedFiles: [] } });
    expect(files()).toEqual(['finished.json', 'started.json', 'state.txt', 'step.json']);
    expect(kept('run/step/1/artifacts/state.txt')).toBe('saved with ********\n');
    expect(JSON.parse(kept('run/step/1/finished.json'))).toMatchObject({
      exitCode: 7,
      reason: 'cancelled',
    });
  });

  test('killed together with its supervisor: the next step starts with its flushed files', async () => {
    const { shared, store, env, run, started } = await step();
    const supervised = run(
      'echo c-1 >"$SHARED_DIR/cluster"; echo up; while kill -0 "$PPID" 2>/dev/null; do sleep 0.05; done',
    );
    const uploading = startUploader([], env);
    await supervised.printed('up');
    await until('the start note', () => existsSync(started));
    supervised.signal('SIGKILL');
    expect(await uploading.end).toEqual({ code: 0, line: { end: 'stored', skippedFiles: [] } });
    expect(existsSync(join(store, 'run/step/1/finished.json'))).toBe(false);

    const next = await step();
    const restoring = startUploader(['restore'], {
      ...next.env,
      HOLDFAST_UPLOAD_DIRECTORY: store,
      HOLDFAST_UPLOAD_SHARED_SOURCES: 'shared/lost.json shared/step.json',
    });
    expect(await restoring.end).toEqual({ code: 0, line: { from: 'shared/step.json' } });
    const following = next.run('cat "$SHARED_DIR/cluster"');
    expect(await following.status()).toBe(0);
    expect(following.stdout.toString()).toBe(readFileSync(join(shared, 'cluster'), 'utf8'));
  });

  // As in a pod whose image has a user of its own: the uploader does not know it, and is another.
  test('with another user: a private file is passed on, and private there', async () => {
    const uids = OWN_UID === 0 ? [1_234, 4_321] : [OWN_UID, OWN_UID];
    const [user, stranger] = uids.map((id) => ({ uid: id, gid: id })) as [User, User];
    const [first, next] = [await step(), await step()];
    chmodSync(bundle.folder, 0o755);
    for (const each of [first, next])
      for (const folder of [each.root, each.store, each.records, each.artifacts, each.shared])
        chmodSync(folder, 0o777);
    const uploading = startUploader([], first.env, stranger);
    const supervised = first.run(
      'echo config >"$SHARED_DIR/kubeconfig"; chmod 600 "$SHARED_DIR/kubeconfig"',
      { as: user },
    );
    expect(await supervised.status()).toBe(0);
    expect(await uploading.end).toEqual({ code: 0, line: { end: 'stored', skippedFiles: [] } });

    const restoring = startUploader(
      ['restore'],
      {
        ...next.env,
        HOLDFAST_UPLOAD_DIRECTORY: first.store,
        HOLDFAST_UPLOAD_SHARED_SOURCES: 'shared/step.json',
      },
      stranger,
    );
    expect((await restoring.end).code).toBe(0);
    const following = next.run('stat -c "%u %a" "$SHARED_DIR/kubeconfig"', { as: user });
    expect(await following.status()).toBe(0);
    expect(following.stdout.toString()).toBe(`${user.uid} 600\n`);
  });

  test('whose artifacts are too large: an error that names the largest file', async () => {
    const { env, run, kept } = await step();
    const supervised = run(
      'head -c 1048577 /dev/zero >"$SHARED_DIR/dump"; echo x >"$ARTIFACT_DIR/x"',
    );
    const uploading = startUploader([], env);
    expect(await supervised.status()).toBe(0);
    expect(await uploading.end).toEqual({
      code: 1,
      line: {
        end: 'stored',
        skippedFiles: [],
        sharedDirFault: expect.stringContaining('"dump"'),
      },
    });
    expect(kept('run/step/1/artifacts/x')).toBe('x\n');
  });

  test('that never becomes ready: it ends on a signal', async () => {
    const { env, files } = await step();
    const uploading = startUploader([], env);
    await until("the uploader's handlers", () => handles(uploading.pid, 1));
    process.kill(uploading.pid, 'SIGTERM');
    expect(await uploading.end).toEqual({ code: 0, line: { end: 'nothing', skippedFiles: [] } });
    expect(files()).toEqual([]);
  });

  test.each(['HOLDFAST_UPLOAD_TO', 'HOLDFAST_UPLOAD_DIRECTORY', 'SHARED_DIR'])(
    'without %s: an error that names it',
    async (name) => {
      const { env } = await step();
      expect(await startUploader([], { ...env, [name]: '' }).end).toEqual({
        code: 1,
        line: { error: `${name} is missing` },
      });
    },
  );
});
