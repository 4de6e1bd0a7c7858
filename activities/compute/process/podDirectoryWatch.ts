import { watch, type FSWatcher } from 'node:fs';
import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import type { PodListener } from '../../ports/compute.ts';
import { deletedPodView } from '../deletedPodView.ts';
import type { ObservePods } from './observePods.ts';
import { makeStateFolders, type PodRecord, type StateDirectories } from './podDirectory.ts';
import { toPodView } from './podView.ts';
import type { PodView } from '../../../core/domain/pod.ts';

/** Options of {@link PodFolderWatch}. */
export interface PodFolderWatchOptions {
  readonly folders: StateDirectories;
  readonly listener: PodListener;
  readonly observe: ObservePods;
  /**
   * Interval between two complete scans (ms). A scan finds killed wrappers and missed file events.
   */
  readonly rescanMs: number;
  /** Called if a scan or a listener failed. The watch continues. */
  readonly failed: (error: unknown, what: string) => void;
}

/**
 * Watches the pods of a state directory with file events and regular complete scans. Scans run one
 * at a time, so a listener gets the changes of a pod in order and its end exactly once.
 */
export class PodFolderWatch {
  readonly #options: PodFolderWatchOptions;
  readonly #known = new Map<string, PodView>();
  /** Names of pods with file events since their last scan. */
  readonly #dirty = new Set<string>();
  #events: FSWatcher | undefined;
  /**
   * The watched directory. It is kept open, because otherwise the inode number of a removed
   * directory may be reused for its successor.
   */
  #folder: FileHandle | undefined;
  #timer: NodeJS.Timeout | undefined;
  #synced = false;
  #stopped = false;
  #rescanDue = false;
  #scanning: Promise<void> | undefined;

  constructor(options: PodFolderWatchOptions) {
    this.#options = options;
  }

  /**
   * Starts the watch.
   * @throws the error of the first scan, because an unusable state directory is a wrong setting
   * that must be reported
   */
  async start(): Promise<void> {
    this.#scanning = this.#scanAll();
    try {
      await this.#scanning;
    } catch (error) {
      this.#stopped = true;
      await this.#closeFiles();
      throw error;
    } finally {
      this.#scanning = undefined;
    }
    this.#timer = setInterval(() => this.#rescan(), this.#options.rescanMs);
    this.#wake();
  }

  /** Returns whether the first scan is complete. */
  synced(): boolean {
    return this.#synced;
  }

  /** Ends the watch. Resolves when no scan runs any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#scanning;
    await this.#closeFiles();
  }

  #rescan(): void {
    this.#rescanDue = true;
    this.#wake();
  }

  #wake(): void {
    if (this.#stopped || this.#scanning !== undefined) return;
    this.#scanning = this.#scanWhileDue().finally(() => {
      this.#scanning = undefined;
      // An event may have arrived between the last check of the loop and here.
      if (this.#rescanDue || this.#dirty.size > 0) this.#wake();
    });
  }

  async #scanWhileDue(): Promise<void> {
    while (!this.#stopped && (this.#rescanDue || this.#dirty.size > 0)) {
      try {
        if (this.#rescanDue) await this.#scanAll();
        else await this.#scanDirty();
      } catch (error) {
        // The next complete scan repeats it.
        this.#options.failed(error, 'read the state directory');
      }
    }
  }

  async #scanAll(): Promise<void> {
    const { folders, observe, listener } = this.#options;
    this.#rescanDue = false;
    const afresh = await this.#watchFiles();
    // A failed read throws: it must never count as an empty list.
    const names = await readdir(folders.pods);
    this.#dirty.clear();
    const records = await observe(names);
    for (const name of new Set([...this.#known.keys(), ...names]))
      this.#report(name, records.get(name), { always: afresh });
    this.#synced = true;
    if (afresh) this.#notify('listener, relisted', () => listener.relisted(new Map(this.#known)));
  }

  async #scanDirty(): Promise<void> {
    const names = [...this.#dirty];
    this.#dirty.clear();
    const records = await this.#options.observe(names);
    for (const name of names) this.#report(name, records.get(name));
  }

  #report(
    name: string,
    record: PodRecord | undefined,
    { always = false }: { readonly always?: boolean } = {},
  ): void {
    const { listener } = this.#options;
    const previous = this.#known.get(name);
    const view = record && toPodView(record);
    if (previous !== undefined && previous.uid !== view?.uid) {
      this.#known.delete(name);
      this.#notify(`listener, pod ${name} gone`, () =>
        listener.changed(deletedPodView(previous), previous),
      );
    }
    if (view === undefined) return;
    const before = this.#known.get(name);
    this.#known.set(name, view);
    if (always || JSON.stringify(before) !== JSON.stringify(view))
      this.#notify(`listener, pod ${name}`, () => listener.changed(view, before));
  }

  #notify(what: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.failed(error, what);
    }
  }

  /**
   * Starts the file watch, also if the directory was removed and created again, or if an earlier
   * watch failed.
   * @returns whether events may have been missed
   */
  async #watchFiles(): Promise<boolean> {
    const { folders, failed } = this.#options;
    await makeStateFolders(folders);
    if (
      this.#events !== undefined &&
      (await this.#folder?.stat())?.ino === (await stat(folders.pods)).ino
    )
      return false;
    await this.#closeFiles();
    this.#folder = await open(folders.pods, 'r');
    const events = watch(folders.pods, (_event, name) => {
      if (name === null) return this.#rescan();
      this.#dirty.add(name);
      this.#wake();
    });
    events.on('error', (error) => {
      failed(error, 'file watch');
      events.close();
      // The next complete scan starts another watch.
      if (this.#events === events) this.#events = undefined;
    });
    this.#events = events;
    return true;
  }

  async #closeFiles(): Promise<void> {
    this.#events?.close();
    this.#events = undefined;
    await this.#folder?.close();
    this.#folder = undefined;
  }
}
