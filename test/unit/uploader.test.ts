import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  ObjectRejectedError,
  type ArtifactStore,
} from '../../activities/artifacts/artifactStore.ts';
import { createDirectoryStore } from '../../activities/artifacts/directoryStore.ts';
import { SHARED_DIR_MAX_BYTES } from '../../core/domain/sharedDir.ts';
import { restoreSnapshot, createSnapshot } from '../../supervisor/records/sharedSnapshot.ts';
import { restoreSharedDir } from '../../uploader/restoreSharedDir.ts';
import { uploadAction } from '../../uploader/uploadDecision.ts';
import { runUploader, type UploaderOptions } from '../../uploader/uploader.ts';
import { until } from '../support/until.ts';

const leftovers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const tidy of leftovers.splice(0).toReversed()) await tidy();
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'holdfast-uploader-'));
  leftovers.push(async () => await rm(made, { recursive: true, force: true }));
  return made;
}

/** A step's supervisor, as its uploader sees it: a port in use. */
async function listener(): Promise<{ port: number; checks(): number; close(): Promise<void> }> {
  let checks = 0;
  const server = createServer((socket) => {
    checks++;
    socket.on('error', () => undefined).destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<void> =>
    await new Promise((resolve) => server.close(() => resolve()));
  leftovers.push(close);
  return { port: (server.address() as AddressInfo).port, checks: () => checks, close };
}

interface Step {
  readonly options: UploaderOptions;
  readonly supervisor: Awaited<ReturnType<typeof listener>>;
  /** Text of the object that is stored under the step's key. */
  readonly stored: (key: string) => Promise<string | undefined>;
  /** All stored objects by key. */
  readonly keys: () => Promise<string[]>;
}

async function step(more: Partial<UploaderOptions> = {}): Promise<Step> {
  const [root, supervisor] = [await folder(), await listener()];
  const [records, artifactDir, sharedDir, kept] = ['records', 'artifacts', 'shared', 'store'].map(
    (name) => join(root, name),
  ) as [string, string, string, string];
  for (const each of [records, artifactDir, sharedDir, kept]) await mkdir(each);
  const store = createDirectoryStore(kept);
  const options = {
    records,
    artifactDir,
    sharedDir,
    port: supervisor.port,
    store,
    destination: 'run/step/1/',
    sharedKey: 'shared/1.json',
    secretVariants: [],
    timeoutMs: 20_000,
    pollMs: 5,
    ...more,
  };
  return {
    options,
    supervisor,
    stored: async (key) => (await store.get(`run/step/1/${key}`))?.toString() ?? undefined,
    keys: async () =>
      (await readdir(kept, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(kept.length + 1))
        .toSorted(),
  };
}

const START = '{"startedAt":"2026-11-22T10:00:00.000Z"}\n';
const RECORD = '{"exitCode":0}\n';

describe('when the uploader starts to upload', () => {
  test.each<[started: boolean, listens: boolean, terminationRequested: boolean, action: string]>([
    [false, false, false, 'wait'],
    [false, false, true, 'leave'],
    [false, true, false, 'wait'],
    [false, true, true, 'wait'],
    [true, true, false, 'wait'],
    [true, true, true, 'wait'],
    [true, false, false, 'upload'],
    [true, false, true, 'upload'],
  ])(
    'started %s, listens %s, termination requested %s: %s',
    (started, probeListening, terminationRequested, action) => {
      expect(uploadAction({ started, probeListening, terminationRequested })).toBe(action);
    },
  );
});

describe('the uploader of a step', () => {
  test('waits for the end of the step despite signals, then stores all its files, without secrets', async () => {
    const { options, supervisor, stored, keys } = await step({ secretVariants: ['hunter22'] });
    await writeFile(join(options.records, 'started.json'), START);
    const signal = new AbortController();
    const record = runUploader(options, signal.signal);
    signal.abort();
    const before = supervisor.checks();
    await until('it looks at the step again', () => supervisor.checks() > before + 2);
    expect(await keys()).toEqual([]);
    await writeFile(join(options.records, 'build-log.txt'), 'login hunter22\n');
    await mkdir(join(options.artifactDir, 'reports'));
    await writeFile(
      join(options.artifactDir, 'reports', 'junit.xml'),
      '<testsuite name="hunter22"/>',
    );
    await writeFile(join(options.sharedDir, 'token'), 'hunter22');
    await writeFile(join(options.records, 'finished.json'), RECORD);
    await supervisor.close();
    expect(await record).toEqual({ end: 'stored', skippedFiles: [] });
    expect(await keys()).toEqual([
      'run/step/1/artifacts/reports/junit.xml',
      'run/step/1/build-log.txt',
      'run/step/1/finished.json',
      'run/step/1/junit/reports/junit.xml',
      'run/step/1/started.json',
      'shared/1.json',
    ]);
    expect(await stored('build-log.txt')).toBe('login ********\n');
    expect(await stored('artifacts/reports/junit.xml')).toBe('<testsuite name="********"/>');
    expect(await stored('junit/reports/junit.xml')).toBe('<testsuite name="********"/>');
    expect([await stored('started.json'), await stored('finished.json')]).toEqual([START, RECORD]);
  });

  test('the files of a step that was killed together with its supervisor are stored', async () => {
    const { options, supervisor, stored } = await step();
    await writeFile(join(options.records, 'started.json'), START);
    await writeFile(join(options.records, 'build-log.txt'), 'as far as it came\n');
    await writeFile(join(options.sharedDir, 'cluster'), 'c-1');
    await supervisor.close();
    expect(await runUploader(options, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: [],
    });
    expect(await stored('build-log.txt')).toBe('as far as it came\n');
    expect(await stored('finished.json')).toBeUndefined();
    const next = await folder();
    await restoreSnapshot((await options.store.get('shared/1.json')) ?? new Uint8Array(), next);
    expect(await readFile(join(next, 'cluster'), 'utf8')).toBe('c-1');
  });

  test.each<[what: string, notes: Record<string, string>, expected: string]>([
    ['a snapshot that the supervisor has taken', { after: 'a', before: 'b', started: '' }, 'a'],
    ['the folder, of a step whose supervisor was killed', { before: 'b', started: '' }, 'folder'],
    ['the files of the earlier steps, of a command that never started', { before: 'b' }, 'b'],
    ['the folder, if the snapshot is invalid', { after: '', started: '' }, 'folder'],
  ])('hands on %s', async (_what, notes, expected) => {
    const { options, supervisor } = await step();
    const snapshot = (text: string): string =>
      text === '' ? 'x' : JSON.stringify({ it: { mode: 0o600, base64: btoa(text) } });
    await writeFile(join(options.records, 'build-log.txt'), '');
    for (const [name, text] of Object.entries(notes)) {
      const file = name === 'started' ? 'started.json' : `shared-${name}.json`;
      await writeFile(join(options.records, file), name === 'started' ? START : snapshot(text));
    }
    await writeFile(join(options.sharedDir, 'it'), 'folder');
    await supervisor.close();
    expect((await runUploader(options, new AbortController().signal)).end).toBe('stored');
    const next = await folder();
    await restoreSnapshot((await options.store.get('shared/1.json')) ?? new Uint8Array(), next);
    expect(await readFile(join(next, 'it'), 'utf8')).toBe(expected);
  });

  test('exits without an upload if it is stopped before the step has started', async () => {
    const { options, supervisor, keys } = await step();
    await supervisor.close();
    expect(await runUploader(options, AbortSignal.abort())).toEqual({
      end: 'nothing',
      skippedFiles: [],
    });
    expect(await keys()).toEqual([]);
  });

  test.each(['build-log.txt', 'finished.json'])(
    'a step of which only %s exists counts as ended',
    async (note) => {
      const { options, supervisor, keys } = await step();
      await writeFile(join(options.records, note), '');
      await supervisor.close();
      expect(await runUploader(options, new AbortController().signal)).toEqual({
        end: 'stored',
        skippedFiles: [],
      });
      expect(await keys()).toEqual([`run/step/1/${note}`, 'shared/1.json']);
    },
  );

  test('too large a SHARED_DIR: other files are stored, and the fault is reported', async () => {
    const { options, supervisor, keys } = await step();
    await writeFile(join(options.records, 'started.json'), START);
    await writeFile(join(options.sharedDir, 'dump'), Buffer.alloc(SHARED_DIR_MAX_BYTES + 1));
    await supervisor.close();
    expect(await runUploader(options, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: [],
      sharedDirFault: expect.stringContaining('"dump"'),
    });
    expect(await keys()).toEqual(['run/step/1/started.json']);
  });

  test.each<[what: string, make: (sharedDir: string) => Promise<void>, fault: RegExp]>([
    [
      'a file whose name is not UTF-8',
      async (sharedDir) =>
        await writeFile(Buffer.concat([Buffer.from(`${sharedDir}/a`), Buffer.of(0xff)]), ''),
      /^SHARED_DIR: names of files must be UTF-8, got "a\ufffd"; rename/,
    ],
    [
      'a directory that cannot be read',
      async (sharedDir) => {
        await rm(sharedDir, { recursive: true });
        await writeFile(sharedDir, '');
      },
      /^SHARED_DIR: failed to read the directory \(ENOTDIR\); /,
    ],
  ])(
    '%s as SHARED_DIR: other files are stored, and the fault is reported',
    async (_what, make, fault) => {
      const { options, supervisor, keys } = await step({ timeoutMs: 2_000 });
      await writeFile(join(options.records, 'finished.json'), RECORD);
      await make(options.sharedDir);
      await supervisor.close();
      expect(await runUploader(options, new AbortController().signal)).toEqual({
        end: 'stored',
        skippedFiles: [],
        sharedDirFault: expect.stringMatching(fault),
      });
      expect(await keys()).toEqual(['run/step/1/finished.json']);
    },
  );

  test('an ARTIFACT_DIR that cannot be read is skipped', async () => {
    const { options, supervisor, keys } = await step({ timeoutMs: 2_000 });
    await writeFile(join(options.records, 'finished.json'), RECORD);
    await rm(options.artifactDir, { recursive: true });
    await writeFile(options.artifactDir, '');
    await supervisor.close();
    expect(await runUploader(options, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: ['.'],
    });
    expect(await keys()).toEqual(['run/step/1/finished.json', 'shared/1.json']);
  });

  test('a file that the store never accepts is skipped, and so is such a log', async () => {
    const { options, supervisor, keys } = await step({ timeoutMs: 2_000 });
    await writeFile(join(options.records, 'build-log.txt'), 'too long');
    await writeFile(join(options.records, 'finished.json'), RECORD);
    for (const name of ['a', 'junit.xml', 'z'])
      await writeFile(join(options.artifactDir, name), '');
    await supervisor.close();
    const store: ArtifactStore = {
      get: async (key) => await options.store.get(key),
      async put(key, content) {
        if (/junit\.xml$|log\.txt$/.test(key)) throw new ObjectRejectedError('EntityTooLarge');
        await options.store.put(key, content);
      },
    };
    expect(await runUploader({ ...options, store }, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: ['../build-log.txt', 'junit.xml'],
    });
    expect(await keys()).toEqual([
      'run/step/1/artifacts/a',
      'run/step/1/artifacts/z',
      'run/step/1/finished.json',
      'shared/1.json',
    ]);
  });

  test('links in ARTIFACT_DIR to files that the step may not read are skipped', async () => {
    const { options, supervisor, keys } = await step();
    const secret = await folder();
    await writeFile(join(secret, 'credentials'), 'of the store');
    await symlink(join(secret, 'credentials'), join(options.artifactDir, 'file'));
    await symlink(secret, join(options.artifactDir, 'folder'));
    await writeFile(join(options.artifactDir, 'own'), 'x');
    await writeFile(join(options.records, 'started.json'), START);
    await supervisor.close();
    expect(await runUploader(options, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: ['file', 'folder'],
    });
    expect(await keys()).toEqual([
      'run/step/1/artifacts/own',
      'run/step/1/started.json',
      'shared/1.json',
    ]);
  });

  test('a directory in ARTIFACT_DIR that becomes a link during the upload is skipped', async () => {
    const { options, supervisor, keys } = await step();
    const secret = await folder();
    await writeFile(join(secret, 'x'), 'of the store');
    const directory = join(options.artifactDir, 'reports');
    await mkdir(directory);
    // More files than concurrent uploads, so that "x" is opened after the change.
    for (const name of 'abcdefghijx') await writeFile(join(directory, name), 'own');
    await writeFile(join(options.artifactDir, '0'), 'first');
    await writeFile(join(options.records, 'started.json'), START);
    await supervisor.close();
    const contents: string[] = [];
    let swapped: Promise<void> | undefined;
    const store: ArtifactStore = {
      get: async (key) => await options.store.get(key),
      async put(key, content) {
        // After the directory is listed and opened, its name refers to another directory.
        if (key.includes('/reports/'))
          await (swapped ??= (async () => {
            await rename(directory, join(options.artifactDir, 'moved'));
            await symlink(secret, directory);
          })());
        const pieces: Uint8Array[] = [];
        for await (const piece of content) pieces.push(piece);
        contents.push(Buffer.concat(pieces).toString());
        await options.store.put(key, pieces);
      },
    };
    await runUploader({ ...options, store }, new AbortController().signal);
    expect(contents).not.toContain('of the store');
    expect(await keys()).toContain('run/step/1/artifacts/reports/x');
  });

  test('a pipe in ARTIFACT_DIR is skipped', async () => {
    const { options, supervisor } = await step();
    execFileSync('mkfifo', [join(options.artifactDir, 'pipe')]);
    await writeFile(join(options.records, 'started.json'), START);
    await supervisor.close();
    expect(await runUploader(options, new AbortController().signal)).toMatchObject({
      skippedFiles: ['pipe'],
    });
  });

  test('an unavailable store is retried, and the record is stored last', async () => {
    const { options, supervisor } = await step();
    await writeFile(join(options.records, 'started.json'), START);
    await writeFile(join(options.records, 'finished.json'), RECORD);
    await supervisor.close();
    const tried: string[] = [];
    const away: ArtifactStore = {
      get: async (key) => await options.store.get(key),
      async put(key, content) {
        tried.push(key);
        if (tried.length === 2) throw new Error('503 Slow Down');
        await options.store.put(key, content);
      },
    };
    expect(await runUploader({ ...options, store: away }, new AbortController().signal)).toEqual({
      end: 'stored',
      skippedFiles: [],
    });
    expect(tried).toEqual([
      'shared/1.json',
      'run/step/1/started.json',
      'shared/1.json',
      'run/step/1/started.json',
      'run/step/1/finished.json',
    ]);
  });

  test.each<[what: string, put: ArtifactStore['put'], message: RegExp]>([
    [
      'refuses',
      async () => await Promise.reject(new Error('403 AccessDenied')),
      /within .*: Error: 403 AccessDenied/,
    ],
    [
      'does not answer',
      async () => await new Promise(() => undefined),
      /within .*: the store does not answer/,
    ],
  ])(
    'a store that %s: an error within the time limit that names the cause',
    async (_what, put, message) => {
      const { options, supervisor } = await step({ timeoutMs: 300 });
      await writeFile(join(options.records, 'started.json'), START);
      await supervisor.close();
      await expect(
        runUploader(
          { ...options, store: { get: async (key) => await options.store.get(key), put } },
          new AbortController().signal,
        ),
      ).rejects.toThrow(message);
    },
  );
});

describe('SHARED_DIR between steps', () => {
  test('files are restored with their modes', async () => {
    const [from, to] = [await folder(), await folder()];
    const content = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await writeFile(join(from, 'binary'), content);
    await writeFile(join(from, 'kubeconfig'), 'grüße');
    await chmod(join(from, 'kubeconfig'), 0o600);
    await writeFile(join(from, 'run.sh'), '');
    await chmod(join(from, 'run.sh'), 0o777);
    await restoreSnapshot(await createSnapshot(from), to);
    expect((await readdir(to)).toSorted()).toEqual(['binary', 'kubeconfig', 'run.sh']);
    expect((await readFile(join(to, 'binary'))).equals(content)).toBe(true);
    expect(await readFile(join(to, 'kubeconfig'), 'utf8')).toBe('grüße');
    expect([
      (await stat(join(to, 'kubeconfig'))).mode & 0o777,
      (await stat(join(to, 'run.sh'))).mode & 0o777,
    ]).toEqual([0o600, 0o777]);
  });

  test('the snapshot is fetched again if Kubernetes repeats the init container, and no link is followed', async () => {
    const [root, records, elsewhere] = [await folder(), await folder(), await folder()];
    const store = createDirectoryStore(root);
    await store.put('shared/1.json', [Buffer.from('first')]);
    const [path, target] = [join(records, 'shared-before.json'), join(elsewhere, 'file')];
    const fetched = async (...sources: string[]): Promise<string | undefined> =>
      await restoreSharedDir(records, store, sources);
    expect(await fetched('shared/1.json')).toBe('shared/1.json');
    await store.put('shared/1.json', [Buffer.from('second')]);
    expect(await fetched('shared/1.json')).toBe('shared/1.json');
    expect(await readFile(path, 'utf8')).toBe('second');
    await rm(path);
    await writeFile(target, 'own');
    await symlink(target, path);
    expect(await fetched('shared/1.json')).toBe('shared/1.json');
    expect([await readFile(path, 'utf8'), await readFile(target, 'utf8')]).toEqual([
      'second',
      'own',
    ]);
    expect(await fetched('shared/2.json')).toBeUndefined();
    expect(await readdir(records)).toEqual([]);
  });

  test('removed files stay removed', async () => {
    const [from, to] = [await folder(), await folder()];
    await restoreSnapshot(await createSnapshot(from), to);
    expect(await readdir(to)).toEqual([]);
  });

  test('a link is rejected, whatever its target', async () => {
    const from = await folder();
    await symlink('/etc/passwd', join(from, 'link'));
    await expect(createSnapshot(from)).rejects.toThrow('"link"');
  });

  test.each(['../x', 'a/b', '..', '.'])('a snapshot with the file %j is invalid', async (name) => {
    const to = await folder();
    await expect(
      restoreSnapshot(Buffer.from(JSON.stringify({ [name]: { mode: 0o644, base64: '' } })), to),
    ).rejects.toThrow('snapshot of SHARED_DIR');
    expect(await readdir(to)).toEqual([]);
  });
});
