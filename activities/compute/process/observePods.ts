import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from './atomicFile.ts';
import {
  POD_FILE,
  readPod,
  removePod,
  type PodRecord,
  type StateDirectories,
} from './podDirectory.ts';
import { killLeftovers, signalProcess, startTimes } from './processIdentity.ts';
import { errorMessage } from '../../../core/domain/errorMessage.ts';

/** Called for each lost pod. `wrapperLog` contains the errors of its wrapper and is often empty. */
export type LostPodListener = (pod: { name: string; uid: string; wrapperLog: string }) => void;

/** Returns the current state of those pods that exist, by name. */
export type ObservePods = (names: readonly string[]) => Promise<Map<string, PodRecord>>;

/**
 * Reads the current state of pods and completes what no running process will complete:
 *
 * - A pod whose wrapper died without an exit file (killed, or the machine went down) is lost,
 *   like a pod whose node is gone. The rest of its runner is killed, because its end would not be
 *   noticed and a replacement must not run at the same time. Then the directory is removed. The pod
 *   never gets an exit code, because none is known.
 * - A pod that has ended and whose deletion was requested is removed if its wrapper died before
 *   it could do so.
 *
 * Every observer does this without a leader. A second observer finds nothing to do.
 *
 * @returns the pods that exist, by name
 */
export async function observePods(
  folders: StateDirectories,
  names: readonly string[],
  lost: LostPodListener,
): Promise<Map<string, PodRecord>> {
  const records = new Map<string, PodRecord>();
  for (const name of names) {
    const record = await readPod(folders, name);
    if (record !== undefined) records.set(name, record);
  }
  const supervised = [...records].filter(
    ([, { owner, exit, stop }]) =>
      owner !== undefined && (exit === undefined || stop !== undefined),
  );
  const alive = await startTimes(supervised.flatMap(([, { owner }]) => owner?.wrapper?.pid ?? []));
  for (const [name, { spec, owner }] of supervised) {
    const wrapper = owner?.wrapper;
    if (wrapper?.startTime !== undefined && alive.get(wrapper.pid) === wrapper.startTime) continue;
    // Between reading the files and checking the process, the wrapper may have written the exit
    // file and even removed the pod.
    const now = await readPod(folders, name);
    if (now?.spec.uid !== spec.uid || (now.exit !== undefined && now.stop === undefined)) {
      if (now === undefined) records.delete(name);
      else records.set(name, now);
      continue;
    }
    if (now.exit === undefined) await reap(folders, now, lost);
    await removePod(folders, name, spec.uid);
    records.delete(name);
  }
  return records;
}

async function reap(
  folders: StateDirectories,
  { spec, owner, started }: PodRecord,
  lost: LostPodListener,
): Promise<void> {
  if (started !== undefined) await signalProcess(started.process, 'SIGKILL', { group: true });
  await killLeftovers(spec.uid);
  // An owner file without a wrapper means that the pod was deleted before it started. Such a pod is
  // not lost.
  if (owner?.wrapper !== undefined)
    lost({ name: spec.name, uid: spec.uid, wrapperLog: await wrapperLog(folders, spec.name) });
}

async function wrapperLog(folders: StateDirectories, name: string): Promise<string> {
  try {
    return await readFile(join(folders.pods, name, POD_FILE.wrapperLog), 'utf8');
  } catch (error) {
    // Another observer was faster.
    if (hasCode(error, 'ENOENT')) return '';
    return `(not readable: ${errorMessage(error)})`;
  }
}
