/**
 * What a process "pod" is on disk. Its state is files alone, so that any worker process can take over from a dead one:
 *
 *     <stateDir>/registrations/<name>.json       what storeRegistrationSecret stored (mode 0600)
 *     <stateDir>/pods/<name>/spec.json           what was asked for; no secrets
 *                           /registration.env.json  the runner's secret environment; removed once the runner has started
 *                           /owner.json          the one wrapper that runs this pod (or that none ever will)
 *                           /started.json        the runner process
 *                           /stop.json           deletion was requested
 *                           /exit.json           how the runner process ended
 *                           /output.log          its stdout and stderr
 *                           /wrapper.log         what the wrapper itself complained about
 *                           /work/               its working directory
 *     <stateDir>/claims/<name>/                  what volume claims are here: folders that outlive an attempt
 *     <stateDir>/trash/                          folders being built or being removed
 *     <stateDir>/id.json                         what tells this state directory from all others
 *
 * A pod's folder appears complete (built in trash/, then renamed) and goes at once (renamed to trash/, then removed).
 * A state directory belongs to one machine, and to one pid namespace: never share it between hosts or containers.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { hasCode, readJson } from './atomicFile.ts';
import type { ProcessIdentity } from './processIdentity.ts';
import type { StopRequest } from './stopRequest.ts';

/** Names of the files in a pod's folder. */
export const POD_FILE = {
  spec: 'spec.json',
  secretEnv: 'registration.env.json',
  owner: 'owner.json',
  started: 'started.json',
  stopRequest: 'stop.json',
  exit: 'exit.json',
  output: 'output.log',
  wrapperLog: 'wrapper.log',
  work: 'work',
} as const;

/** spec.json. */
export interface ProcessPodSpec {
  readonly name: string;
  readonly uid: string;
  readonly workflowId: string;
  readonly node: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly terminationGracePeriodSeconds: number;
}

/** owner.json: whoever creates it decides the pod's fate. `wrapper` is absent when the pod was deleted before one had started. */
export interface PodOwner {
  readonly wrapper?: ProcessIdentity;
}

/** started.json: the runner process, which leads a session and a process group of its own. */
export interface RunnerStarted {
  readonly process: ProcessIdentity;
  /** ISO 8601. */
  readonly at: string;
}

/** exit.json. */
export interface RunnerExit {
  /** 128 + n after signal n; 127 and 126 when the command could not be started. */
  readonly code: number;
  /** ISO 8601. */
  readonly finishedAt: string;
  readonly message?: string;
  /** `Shutdown`: the wrapper was told to end although nobody had deleted the pod, as when the machine goes down. */
  readonly reason?: 'Shutdown';
}

/** All that is known of one pod at one moment. */
export interface PodRecord {
  readonly spec: ProcessPodSpec;
  readonly owner?: PodOwner;
  readonly started?: RunnerStarted;
  readonly stop?: StopRequest;
  readonly exit?: RunnerExit;
}

/** The folders of one state directory. */
export interface StateDirectories {
  readonly pods: string;
  readonly registrations: string;
  readonly trash: string;
  readonly claims: string;
}

/** Where state lives unless the worker is told otherwise: `$XDG_STATE_HOME/holdfast/processes`, by default below `~/.local/state`. */
export function defaultStateDir(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'holdfast', 'processes');
}

/** Returns the paths of the folders in a state directory. They may not exist yet. */
export function stateFolders(stateDir: string): StateDirectories {
  return {
    pods: join(stateDir, 'pods'),
    registrations: join(stateDir, 'registrations'),
    trash: join(stateDir, 'trash'),
    claims: join(stateDir, 'claims'),
  };
}

/** The folders of the state directory that a pod's folder lies in. */
export function stateFoldersOf(podFolder: string): StateDirectories {
  return stateFolders(dirname(dirname(podFolder)));
}

/** Makes the folders, readable by their owner only. */
export async function makeStateFolders(folders: StateDirectories): Promise<void> {
  for (const folder of [folders.pods, folders.registrations, folders.trash, folders.claims])
    await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** Reads a pod's folder; `undefined` when there is none. */
export async function readPod(
  folders: StateDirectories,
  name: string,
): Promise<PodRecord | undefined> {
  const file = (part: string): string => join(folders.pods, name, part);
  const spec = await readJson<ProcessPodSpec>(file(POD_FILE.spec));
  if (spec === undefined) return undefined;
  const [owner, started, stop, exit] = await Promise.all([
    readJson<PodOwner>(file(POD_FILE.owner)),
    readJson<RunnerStarted>(file(POD_FILE.started)),
    readJson<StopRequest>(file(POD_FILE.stopRequest)),
    readJson<RunnerExit>(file(POD_FILE.exit)),
  ]);
  // A folder that goes to the trash between two reads takes with it what was written long before: that pod is gone, not without an end.
  const torn =
    (started === undefined || exit === undefined) &&
    (await readJson<ProcessPodSpec>(file(POD_FILE.spec)))?.uid !== spec.uid;
  if (torn) return undefined;
  return omitUndefined({ spec, owner, started, stop, exit });
}

/**
 * Removes a pod's folder if it still holds this UID. Whoever watches pods/ sees it go at once. Safe to repeat, by several
 * processes at the same time. (Between the look and the rename a pod of the same name could take its place only if its
 * identity were provisioned again in that instant; attempts are never used twice.)
 */
export async function removePod(
  folders: StateDirectories,
  name: string,
  uid: string,
): Promise<void> {
  const folder = join(folders.pods, name);
  const present = await readJson<ProcessPodSpec>(join(folder, POD_FILE.spec));
  if (present?.uid !== uid) return;
  const trash = join(folders.trash, `${uid}-${randomUUID()}`);
  try {
    await rename(folder, trash);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    throw error;
  }
  await rm(trash, { recursive: true, force: true, maxRetries: 5 });
}

/** What a crash left in trash/ is removed once it is this old: until then somebody may be at work on it. */
const TRASH_AGE_MS = 60_000;

/** Removes what crashes have left behind. */
export async function emptyTrash(folders: StateDirectories): Promise<void> {
  for (const entry of await readdir(folders.trash)) {
    const path = join(folders.trash, entry);
    const age = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      // Not there any more: its owner has removed it.
      () => 0,
    );
    if (age > TRASH_AGE_MS) await rm(path, { recursive: true, force: true });
  }
}

/**
 * Wakes those who watch pods/ after a file inside a pod's folder was written: they hear of changes to the folder itself
 * (its attributes included), not of those below it. One watch thus serves any number of pods.
 */
export async function touchPodsDirectory(podFolder: string): Promise<void> {
  const now = new Date();
  try {
    await utimes(podFolder, now, now);
  } catch (error) {
    // Removed meanwhile: that woke them, too.
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
