import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import pMap from 'p-map';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { isJUnitReport, ARTIFACT_NAMES } from '../core/domain/artifactLayout.ts';
import { SecretMasker } from '../core/domain/secretMasker.ts';

/** So many at once: a folder may have thousands of small files. */
const CONCURRENCY = 8;

/** Of what cannot be read, however often it is tried: the job made it so, or its name is no text. */
const UNREADABLE: ReadonlySet<string | undefined> = new Set(['EACCES', 'ELOOP', 'ENOENT']);

/**
 * Puts what a step left in ARTIFACT_DIR into its folder in the store, and the JUnit reports of it a second time, in one place. Links are not
 * followed: they might lead to what is the uploader's alone.
 * @param to - the step's folder in the store, with a slash at its end
 * @param forms - of secrets, which are hidden
 * @returns paths of what was left out: no files, or unreadable
 * @throws Error the first that could not be stored; others may have been
 */
export async function uploadDirectory(
  folder: string,
  store: ArtifactStore,
  to: string,
  forms: readonly string[],
): Promise<string[]> {
  const leftOut = await pMap(
    await listFiles(folder),
    async ({ from, isFile }) => {
      const path = relative(folder, from);
      const keys = [
        `${to}${ARTIFACT_NAMES.artifacts}${path}`,
        ...(isJUnitReport(path) ? [`${to}${ARTIFACT_NAMES.junit}${path}`] : []),
      ];
      for (const key of keys)
        if (!isFile || !(await uploadFile(from, store, key, forms))) return path;
      return undefined;
    },
    { concurrency: CONCURRENCY },
  );
  return leftOut.filter((path) => path !== undefined).toSorted();
}

/** All but folders, other than those that cannot be read. */
async function listFiles(folder: string): Promise<{ from: string; isFile: boolean }[]> {
  const things: { from: string; isFile: boolean }[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const from = join(folder, entry.name);
    const within = entry.isDirectory() ? await skipUnreadable(listFiles(from)) : undefined;
    things.push(...(within ?? [{ from, isFile: entry.isFile() }]));
  }
  return things;
}

/** @returns false: it cannot be read. @throws Error when it cannot be stored */
export async function uploadFile(
  path: string,
  store: ArtifactStore,
  key: string,
  forms: readonly string[],
): Promise<boolean> {
  const file = await skipUnreadable(open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (file === undefined) return false;
  try {
    await store.put(
      key,
      maskSecrets(file.createReadStream({ autoClose: false }), new SecretMasker(forms)),
    );
    return true;
  } finally {
    await file.close();
  }
}

async function skipUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (UNREADABLE.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

async function* maskSecrets(
  pieces: AsyncIterable<Uint8Array>,
  censor: SecretMasker,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield censor.push(piece);
  yield censor.end();
}
