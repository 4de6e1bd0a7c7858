/**
 * Files of a process "pod". Its state consists of files only, so that any worker process can take
 * over from a dead one:
 *
 *     <stateDir>/registrations/<name>.json       stored by storeRegistrationSecret (mode 0600)
 *     <stateDir>/pods/<name>/spec.json           the request; no secrets
 *                           /registration.env.json  the runner's secret environment variables;
 *                                                removed after the runner has started
 *                           /owner.json          the single wrapper that runs this pod (or a
 *                                                record that none ever will)
 *                           /started.json        the runner process
 *                           /stop.json           the requested deletion
 *                           /exit.json           exit of the runner process
 *                           /output.log          its stdout and stderr
 *                           /wrapper.log         errors of the wrapper itself
 *                           /work/               its working directory
 *     <stateDir>/claims/<name>/                  volume claims: directories that outlive an attempt
 *     <stateDir>/trash/                          directories being created or removed
 *     <stateDir>/id.json                         ID of this state directory
 *
 * A pod's directory appears complete (created in trash/, then renamed) and disappears at once
 * (renamed to trash/, then removed). A state directory belongs to one machine and one PID
 * namespace: never share it between hosts or containers.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { hasCode, readJson } from './atomicFile.ts';
import type { ProcessIdentity } from './processIdentity.ts';
import type { StopRequest } from './stopRequest.ts';

/** Names of the files in a pod's directory. */
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

/** Content of spec.json. */
export interface ProcessPodSpec {
  readonly name: string;
  readonly uid: string;
  readonly workflowId: string;
  readonly node: string;
  /** Time of creation (ISO 8601). */
  readonly createdAt: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly terminationGracePeriodSeconds: number;
}

/**
 * Content of owner.json. The process that creates it owns the pod. `wrapper` is absent if the pod
 * was deleted before a wrapper had started.
 */
export interface PodOwner {
  readonly wrapper?: ProcessIdentity;
}

/** Content of started.json: the runner process, which leads its own session and process group. */
export interface RunnerStarted {
  readonly process: ProcessIdentity;
  /** Time of the start (ISO 8601). */
  readonly at: string;
}

/** Content of exit.json. */
export interface RunnerExit {
  /** 128 + n after signal n; 127 or 126 if the command could not be started. */
  readonly code: number;
  /** Time of the end (ISO 8601). */
  readonly finishedAt: string;
  readonly message?: string;
  /**
   * `Shutdown` means that the wrapper was terminated although the pod was not deleted, as when the
   * machine goes down.
   */
  readonly reason?: 'Shutdown';
}

/** State of a pod at one moment. */
export interface PodRecord {
  readonly spec: ProcessPodSpec;
  readonly owner?: PodOwner;
  readonly started?: RunnerStarted;
  readonly stop?: StopRequest;
  readonly exit?: RunnerExit;
}

/** Paths in a state directory. */
export interface StateDirectories {
  readonly pods: string;
  readonly registrations: string;
  readonly trash: string;
  readonly claims: string;
}

/**
 * Returns the default state directory: `$XDG_STATE_HOME/holdfast/processes`, or below
 * `~/.local/state` if that variable is not set.
 */
export function defaultStateDir(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'holdfast', 'processes');
}

/** Returns the paths in a state directory. The directories may not exist yet. */
export function stateFolders(stateDir: string): StateDirectories {
  return {
    pods: join(stateDir, 'pods'),
    registrations: join(stateDir, 'registrations'),
    trash: join(stateDir, 'trash'),
    claims: join(stateDir, 'claims'),
  };
}

/** Returns the paths in the state directory that contains a pod's directory. */
export function stateFoldersOf(podFolder: string): StateDirectories {
  return stateFolders(dirname(dirname(podFolder)));
}

/** Creates the directories, readable by their owner only. */
export async function makeStateFolders(folders: StateDirectories): Promise<void> {
  for (const folder of [folders.pods, folders.registrations, folders.trash, folders.claims])
    await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** Reads a pod's directory. Returns `undefined` if it does not exist. */
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
  // If the directory is moved to trash/ between two reads, older files appear to be missing. Then
  // the pod is deleted; it is not a pod without an end.
  const torn =
    (started === undefined || exit === undefined) &&
    (await readJson<ProcessPodSpec>(file(POD_FILE.spec)))?.uid !== spec.uid;
  if (torn) return undefined;
  return omitUndefined({ spec, owner, started, stop, exit });
}

/**
 * Removes a pod's directory if it still contains this UID. Watchers of pods/ see the removal
 * immediately. Several processes may call it repeatedly and concurrently. Between the check and the
 * rename, another pod could take the same name only if its identity were provisioned again at that
 * moment, but attempts are never reused.
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

/**
 * Minimum age of an entry in trash/ before it is removed (ms). A younger one may still be in use.
 */
const TRASH_AGE_MS = 60_000;

/** Removes what crashed processes have left in trash/. */
export async function emptyTrash(folders: StateDirectories): Promise<void> {
  for (const entry of await readdir(folders.trash)) {
    const path = join(folders.trash, entry);
    const age = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      // Its owner has removed it meanwhile.
      () => 0,
    );
    if (age > TRASH_AGE_MS) await rm(path, { recursive: true, force: true });
  }
}

/**
 * Wakes the watchers of pods/ after a file in a pod's directory was written. They get events for
 * changes of the directory itself, including its attributes, but not for files in it. So one watch
 * is enough for any number of pods.
 */
export async function touchPodsDirectory(podFolder: string): Promise<void> {
  const now = new Date();
  try {
    await utimes(podFolder, now, now);
  } catch (error) {
    // Removed meanwhile, which woke the watchers too.
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
