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

/** Told of pods that were found lost. `wrapperLog` is what their wrapper complained about, often nothing. */
export type LostPodListener = (pod: { name: string; uid: string; wrapperLog: string }) => void;

/** Pods as they are now, by name: those that exist of these. */
export type ObservePods = (names: readonly string[]) => Promise<Map<string, PodRecord>>;

/**
 * Reads pods as they are now, and finishes what no living process will finish:
 *
 * - A pod whose wrapper died without an exit file (killed, or the machine went down) is lost, like a pod whose node is gone.
 *   What is left of its runner is killed, because nobody would learn how it ends, and a replacement must not run beside it;
 *   then the folder is removed. It is never given an exit code: none is known.
 * - A pod that has ended and whose deletion was requested, but whose wrapper died before removing it, is removed.
 *
 * Every observer does this, so it takes no leader; whoever comes second finds nothing left to do.
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
    // It may have written the exit file, and even removed the pod, between our look at the files and at the process.
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
  // Without a wrapper in it, the owner file says: deleted before it started. That is no loss.
  if (owner?.wrapper !== undefined)
    lost({ name: spec.name, uid: spec.uid, wrapperLog: await wrapperLog(folders, spec.name) });
}

async function wrapperLog(folders: StateDirectories, name: string): Promise<string> {
  try {
    return await readFile(join(folders.pods, name, POD_FILE.wrapperLog), 'utf8');
  } catch (error) {
    // Another observer was faster.
    if (hasCode(error, 'ENOENT')) return '';
    return `(not readable: ${error instanceof Error ? error.message : String(error)})`;
  }
}
