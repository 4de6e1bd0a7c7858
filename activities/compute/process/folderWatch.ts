import { watch as watchFolder, type FSWatcher } from 'node:fs';
import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import type { PodListener } from '../../ports.ts';
import { makeStateFolders, type PodRecord, type StateFolders } from './podFolder.ts';
import { goneView } from '../goneView.ts';
import { viewOfRecord } from './viewOfRecord.ts';
import type { PodView } from '../../../core/domain/pod.ts';

export interface PodWatchOptions {
  readonly folders: StateFolders;
  readonly listener: PodListener;
  /** Reads these pods as they are now. */
  readonly observe: (names: readonly string[]) => Promise<Map<string, PodRecord>>;
  /** Between two complete looks, in ms. They find what makes no file event (a killed wrapper), and what was missed. */
  readonly rescanMs: number;
  /** A look or a listener failed; the watch goes on. */
  readonly failed: (error: unknown, what: string) => void;
}

/**
 * Watches the pods of a state directory: file events for speed, a slow complete look for certainty. One look at a time, so a
 * listener hears of each pod's changes in order, and exactly once of its end.
 */
export async function watchPods(options: PodWatchOptions): Promise<{ stop(): Promise<void>; synced(): boolean }> {
  const { folders, listener, rescanMs } = options;
  const known = new Map<string, PodView>();
  const dirty = new Set<string>();
  let fileWatch: FSWatcher | undefined;
  /** The folder that is watched. Held open, because a removed folder's inode number may else be given to the one made after it. */
  let watchedFolder: FileHandle | undefined;
  let synced = false;
  let stopped = false;
  let rescanDue = false;
  let looking: Promise<void> | undefined;

  function tell(what: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      options.failed(error, what);
    }
  }

  function report(name: string, record: PodRecord | undefined, always: boolean): void {
    const previous = known.get(name);
    const view = record && viewOfRecord(record);
    if (previous !== undefined && previous.uid !== view?.uid) {
      known.delete(name);
      tell(`listener, pod ${name} gone`, () => listener.changed(goneView(previous), previous));
    }
    if (view === undefined) return;
    const before = known.get(name);
    known.set(name, view);
    if (always || JSON.stringify(before) !== JSON.stringify(view)) tell(`listener, pod ${name}`, () => listener.changed(view, before));
  }

  /** Watches the folder; again if it was removed and made anew, or if watching had failed. Returns whether events may have been missed. */
  async function watchFiles(): Promise<boolean> {
    await makeStateFolders(folders);
    if (fileWatch !== undefined && (await watchedFolder?.stat())?.ino === (await stat(folders.pods)).ino) return false;
    await closeFiles();
    watchedFolder = await open(folders.pods, 'r');
    const opened = watchFolder(folders.pods, (_event, name) => {
      if (name === null) rescanDue = true;
      else dirty.add(name);
      wake();
    });
    opened.on('error', (error) => {
      options.failed(error, 'file watch');
      opened.close();
      // The next complete look opens another.
      if (fileWatch === opened) fileWatch = undefined;
    });
    fileWatch = opened;
    return true;
  }

  async function closeFiles(): Promise<void> {
    fileWatch?.close();
    fileWatch = undefined;
    await watchedFolder?.close();
    watchedFolder = undefined;
  }

  async function lookAtAll(): Promise<void> {
    const afresh = await watchFiles();
    // A failed listing throws: an empty list must never stand in for it.
    const names = await readdir(folders.pods);
    dirty.clear();
    const records = await options.observe(names);
    for (const name of new Set([...known.keys(), ...names])) report(name, records.get(name), afresh);
    synced = true;
    if (afresh) tell('listener, relisted', () => listener.relisted(new Map(known)));
  }

  async function lookAtDirty(): Promise<void> {
    const names = [...dirty];
    dirty.clear();
    const records = await options.observe(names);
    for (const name of names) report(name, records.get(name), false);
  }

  async function lookWhileDue(): Promise<void> {
    while (!stopped && (rescanDue || dirty.size > 0)) {
      try {
        if (rescanDue) {
          rescanDue = false;
          await lookAtAll();
        } else {
          await lookAtDirty();
        }
      } catch (error) {
        // The next complete look makes up for it.
        options.failed(error, 'look at the state directory');
      }
    }
  }

  function wake(): void {
    if (stopped || looking !== undefined) return;
    looking = lookWhileDue().finally(() => {
      looking = undefined;
      // An event between the loop's last test and here.
      if (rescanDue || dirty.size > 0) wake();
    });
  }

  // The first look is the caller's: a state directory that cannot be used is a wrong setting, and must be heard of.
  try {
    await (looking = lookAtAll());
  } catch (error) {
    stopped = true;
    await closeFiles();
    throw error;
  } finally {
    looking = undefined;
  }
  const timer = setInterval(() => {
    rescanDue = true;
    wake();
  }, rescanMs);
  wake();

  return {
    synced: () => synced,
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await looking;
      await closeFiles();
    },
  };
}
