import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile, hasCode, readJson } from './atomicFile.ts';

/** File with the ID, in the state directory. */
const ID_FILE = 'id.json';
/** File with systemd's machine ID. It does not exist in containers and on macOS. */
const MACHINE_ID = '/etc/machine-id';
const DIGITS = 16;

/**
 * Returns an ID that distinguishes a state directory from all others. It is derived from an ID that
 * the directory gets once and from the ID of the machine. Without the latter, machines that share a
 * home directory would each take the processes of the other for dead. The host name is not used,
 * because it changes on a laptop; nor is the path, which is the same in all containers.
 * @throws errors of the operating system
 */
export async function stateFolderId(stateDir: string): Promise<string> {
  const file = join(stateDir, ID_FILE);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  if ((await readJson<string>(file)) === undefined)
    await createFile(file, JSON.stringify(randomUUID()));
  const [folder, machine] = await Promise.all([readJson<string>(file), machineId()]);
  // Hashed, because machine-id(5) requires that the ID is not exposed.
  return createHash('sha256').update(`${machine}|${folder}`).digest('hex').slice(0, DIGITS);
}

async function machineId(): Promise<string> {
  try {
    return (await readFile(MACHINE_ID, 'utf8')).trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}
