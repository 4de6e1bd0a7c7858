import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  makeStateFolders,
  POD_FILE,
  readPod,
  stateFolders,
  type StateDirectories,
} from '../../activities/compute/process/podDirectory.ts';
import { PodFolderWatch } from '../../activities/compute/process/podDirectoryWatch.ts';
import { until } from '../support/until.ts';

let folder: string;
let folders: StateDirectories;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-pods-'));
  folders = stateFolders(folder);
  await makeStateFolders(folders);
});
afterEach(async () => await rm(folder, { recursive: true }));

test('a pod whose folder is moved to the trash between the reads of its files is gone, not running', async () => {
  const pod = join(folders.pods, 'a');
  await mkdir(pod);
  await writeFile(
    join(pod, POD_FILE.exit),
    JSON.stringify({ code: 0, finishedAt: '2026-01-01T00:00:00Z' }),
  );
  // Reading the first file blocks until this test writes its text. By then the folder is gone.
  await promisify(execFile)('mkfifo', [join(pod, POD_FILE.spec)]);
  const reading = readPod(folders, 'a');
  const spec = await open(join(pod, POD_FILE.spec), 'w');
  await rename(pod, join(folders.trash, 'a'));
  await spec.writeFile(JSON.stringify({ uid: 'u1' }));
  await spec.close();
  expect(await reading).toBeUndefined();
});

test('a watch that cannot start leaves no file open', async () => {
  const watchers = (): number =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'FSEventWrap').length;
  const before = watchers();
  const watch = new PodFolderWatch({
    folders,
    listener: { changed: () => undefined, relisted: () => undefined },
    observe: async () => {
      expect(watchers()).toBe(before + 1);
      throw new Error('no permission');
    },
    rescanMs: 60_000,
    failed: () => undefined,
  });
  await expect(watch.start()).rejects.toThrow('no permission');
  await until('its files to be closed', () => watchers() === before);
});
