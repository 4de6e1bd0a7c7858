import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ObjectRejectedError, type ArtifactStore } from './artifactStore.ts';

/** Errors of a file system that does not support a name or the size of a file. */
const REJECTIONS: ReadonlySet<string | undefined> = new Set([
  'EFBIG',
  'EILSEQ',
  'EINVAL',
  'ENAMETOOLONG',
]);

/**
 * Creates a store in a directory, such as a file system that all nodes mount. A file under its key
 * is always complete and synced to disk.
 */
export function createDirectoryStore(root: string): ArtifactStore {
  return {
    async put(key, content) {
      try {
        await writeAtomically(pathOf(root, key), content);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (!REJECTIONS.has(code)) throw error;
        throw new ObjectRejectedError(message, { cause: error });
      }
    },

    async get(key) {
      try {
        return await readFile(pathOf(root, key));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
  };
}

async function writeAtomically(
  path: string,
  content: Parameters<ArtifactStore['put']>[1],
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  // The temporary name does not contain the file name, which may already have the maximum length.
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, 'wx', 0o644);
    try {
      for await (const piece of content) await file.writeFile(piece);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

function pathOf(root: string, key: string): string {
  const segments = key.split('/');
  if (
    segments.some(
      (segment) => segment === '' || segment === '.' || segment === '..' || segment.includes('\0'),
    )
  )
    throw new Error(`invalid artifact key: ${JSON.stringify(key)}`);
  return join(root, ...segments);
}
