import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { ObjectRejectedError } from '../../../activities/artifacts/artifactStore.ts';
import { createDirectoryStore } from '../../../activities/artifacts/directoryStore.ts';
import { artifactStoreContract } from '../../support/artifactStoreContract.ts';

const folders: string[] = [];
async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'holdfast-store-'));
  folders.push(made);
  return made;
}
afterEach(async () => {
  for (const made of folders.splice(0)) await rm(made, { recursive: true, force: true });
});

describe('a directory as artifact store', () => {
  artifactStoreContract(async () => createDirectoryStore(await folder()));

  test('has files that users find by their keys, and no partial files', async () => {
    const root = await folder();
    const store = createDirectoryStore(root);
    await store.put('artifacts/run/build-log.txt', [Buffer.from('x')]);
    const broken = new Error('broken');
    await expect(
      store.put(
        'artifacts/run/other',
        (function* () {
          yield Buffer.from('half');
          throw broken;
        })(),
      ),
    ).rejects.toThrow(broken);
    expect(await readdir(join(root, 'artifacts', 'run'))).toEqual(['build-log.txt']);
  });

  test.each(['n'.repeat(256), 'n/'.repeat(2_100) + 'n'])(
    'a key that is too long for the file system is rejected, and a retry fails as well',
    async (key) => {
      const root = await folder();
      await expect(createDirectoryStore(root).put(key, [Buffer.from('x')])).rejects.toThrow(
        ObjectRejectedError,
      );
      expect(await readdir(root)).toEqual([]);
    },
  );

  test.each(['', '/etc/passwd', 'a//b', 'a/../../b', '.', 'a/./b', 'a\0b'])(
    '%j is an invalid key',
    async (key) => {
      const root = join(await folder(), 'inner');
      const store = createDirectoryStore(root);
      await expect(store.put(key, [])).rejects.toThrow('artifact key');
      await expect(store.get(key)).rejects.toThrow('artifact key');
    },
  );
});
