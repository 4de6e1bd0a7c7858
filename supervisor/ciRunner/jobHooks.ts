import { constants } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { RunnerJobHooks } from '../../core/domain/runnerKinds/runnerKind.ts';
import { hookScript } from './hookScript.ts';
import type { JobSignal } from './jobState.ts';
import type { Pending } from '../process/pending.ts';

/**
 * Interval between reads of the hooks' file (ms). The file is not watched, because a node's limit
 * on inotify instances is shared by all its pods.
 */
const CHECK_INTERVAL_MS = 500;
/** Maximum number of bytes per read. A note has ten bytes, but any job can write to the file. */
const MAX_BYTES = 4096;

/**
 * Scripts that a CI runner executes before and after each job. They append a note to a file, which
 * is read here.
 */
export class JobHooks {
  readonly #folder: string;
  readonly #file: string;
  readonly #variables: RunnerJobHooks;
  readonly #pending: Pending;
  #read = 0;

  constructor(folder: string, variables: RunnerJobHooks, pending: Pending) {
    this.#folder = folder;
    this.#variables = variables;
    this.#file = join(folder, 'jobs');
    this.#pending = pending;
  }

  /**
   * Writes the scripts.
   *
   * @param env - environment, which contains the user's own hooks
   * @returns the variables that make the runner use the scripts
   */
  async install(env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
    await this.#pending.track(writeFile(this.#file, ''));
    const set: Record<string, string> = {};
    for (const when of ['started', 'completed'] as const) {
      const own = env[this.#variables[when]] || undefined;
      const extension = own === undefined ? '.sh' : extname(own);
      const text = hookScript(extension, { when, file: this.#file, own });
      // The runner rejects such a file, with a better message than ours would be.
      if (text === undefined) continue;
      const path = join(this.#folder, `job-${when}${extension}`);
      await this.#pending.track(writeFile(path, text, { mode: 0o755 }));
      set[this.#variables[when]] = path;
    }
    return set;
  }

  /**
   * Reports every hook that has run, in order.
   *
   * @param onSignal - called for each hook
   * @param failed - called for each failed read
   * @param needed - whether to continue
   */
  watch(
    onSignal: (sign: JobSignal) => void,
    failed: (error: unknown) => void,
    needed: () => boolean,
  ): void {
    setTimeout(() => {
      if (!needed()) return;
      this.readNew(onSignal)
        .catch(failed)
        .finally(() => this.watch(onSignal, failed, needed));
    }, CHECK_INTERVAL_MS);
  }

  /** Reports the notes that were added since the last read. */
  async readNew(onSignal: (sign: JobSignal) => void): Promise<void> {
    const text = await this.#pending.track(this.#offset());
    const end = text.lastIndexOf('\n') + 1;
    // Data without a line break in this many bytes is not a note.
    this.#read += end === 0 && text.length === MAX_BYTES ? MAX_BYTES : end;
    for (const line of text.slice(0, end).split('\n')) {
      if (line === 'started') onSignal('hookStarted');
      else if (line === 'completed') onSignal('hookEnded');
    }
  }

  /**
   * Reads the new bytes. A job may have replaced the file by a link, which is not followed, or by a
   * pipe, which is not waited for.
   */
  async #offset(): Promise<string> {
    const file = await open(
      this.#file,
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const { buffer, bytesRead } = await file.read(
        Buffer.alloc(MAX_BYTES),
        0,
        MAX_BYTES,
        this.#read,
      );
      return buffer.toString('latin1', 0, bytesRead);
    } finally {
      await file.close();
    }
  }
}
