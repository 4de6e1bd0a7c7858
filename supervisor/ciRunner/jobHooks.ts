import { constants } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { RunnerJobHooks } from '../../core/domain/runnerKinds/runnerKind.ts';
import { hookScript } from './hookScript.ts';
import type { JobSignal } from './jobState.ts';
import type { Pending } from '../process/pending.ts';

/** How often the hooks' file is looked at, in ms. Not watched: a node's limit on inotify instances is shared by all its pods. */
const CHECK_INTERVAL_MS = 500;
/** How much of it is read in one look, in bytes: a note has ten, but any job can write there what it likes. */
const MAX_BYTES = 4096;

/** The scripts that a CI runner executes before and after each job: they note that in a file, which is read here. */
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

  /** Writes the scripts. @param env the user's own hooks are in it @returns the variables that make the runner use ours */
  async install(env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
    await this.#pending.track(writeFile(this.#file, ''));
    const set: Record<string, string> = {};
    for (const when of ['started', 'completed'] as const) {
      const own = env[this.#variables[when]] || undefined;
      const extension = own === undefined ? '.sh' : extname(own);
      const text = hookScript(extension, { when, file: this.#file, own });
      if (text === undefined) continue; // the runner refuses such a file, and says so better than we could
      const path = join(this.#folder, `job-${when}${extension}`);
      await this.#pending.track(writeFile(path, text, { mode: 0o755 }));
      set[this.#variables[when]] = path;
    }
    return set;
  }

  /** Tells of every hook that has run, in order, for as long as somebody needs it. */
  watch(
    tell: (sign: JobSignal) => void,
    failed: (error: unknown) => void,
    needed: () => boolean,
  ): void {
    setTimeout(() => {
      if (!needed()) return;
      this.readNew(tell)
        .catch(failed)
        .finally(() => this.watch(tell, failed, needed));
    }, CHECK_INTERVAL_MS);
  }

  /** Tells of what was noted since the last look. */
  async readNew(tell: (sign: JobSignal) => void): Promise<void> {
    const text = await this.#pending.track(this.#offset());
    const end = text.lastIndexOf('\n') + 1;
    // What has no line's end in so many bytes is no note.
    this.#read += end === 0 && text.length === MAX_BYTES ? MAX_BYTES : end;
    for (const line of text.slice(0, end).split('\n')) {
      if (line === 'started') tell('hookStarted');
      else if (line === 'completed') tell('hookEnded');
    }
  }

  /** Neither a link is followed nor a pipe waited for that a job has put in the file's place. */
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
