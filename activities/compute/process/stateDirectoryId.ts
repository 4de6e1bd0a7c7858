import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile, hasCode, readJson } from './atomicFile.ts';

/** In the state directory, beside the folders of its pods. */
const ID_FILE = 'id.json';
/** systemd's id of a machine; in a container, and on macOS, there is none. */
const MACHINE_ID = '/etc/machine-id';
const DIGITS = 16;

/**
 * What tells one state folder from all others: an id that it is given once, and the machine's, because on a home directory that machines
 * share each finds the other's processes dead. Not the host's name, which changes under a laptop, nor the path, which all containers share.
 * @throws errors of the operating system
 */
export async function stateFolderId(stateDir: string): Promise<string> {
  const file = join(stateDir, ID_FILE);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  if ((await readJson<string>(file)) === undefined)
    await createFile(file, JSON.stringify(randomUUID()));
  const [folder, machine] = await Promise.all([readJson<string>(file), machineId()]);
  // Hashed, as machine-id(5) demands of whoever shows it.
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
