import { readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { hookScript } from './hookScript.ts';
import type { JobSign } from './jobState.ts';
import type { Pending } from './pending.ts';

const HOOKS = { started: 'ACTIONS_RUNNER_HOOK_JOB_STARTED', completed: 'ACTIONS_RUNNER_HOOK_JOB_COMPLETED' } as const;

/** How often the hooks' file is looked at, in ms. Not watched: a node's limit on inotify instances is shared by all its pods. */
const LOOK_MS = 500;

/** The scripts that GitHub's runner runs before and after each job: they note that in a file, which is read here. */
export class JobHooks {
  readonly #folder: string;
  readonly #file: string;
  readonly #pending: Pending;
  #read = 0;

  constructor(folder: string, pending: Pending) {
    this.#folder = folder;
    this.#file = join(folder, 'jobs');
    this.#pending = pending;
  }

  /** Writes the scripts. @param env the user's own hooks are in it @returns the variables that make the runner use ours */
  async install(env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
    await this.#pending.track(writeFile(this.#file, ''));
    const set: Record<string, string> = {};
    for (const when of ['started', 'completed'] as const) {
      const own = env[HOOKS[when]] || undefined;
      const extension = own === undefined ? '.sh' : extname(own);
      const text = hookScript(extension, { when, file: this.#file, own });
      if (text === undefined) continue; // the runner refuses such a file, and says so better than we could
      const path = join(this.#folder, `job-${when}${extension}`);
      await this.#pending.track(writeFile(path, text, { mode: 0o755 }));
      set[HOOKS[when]] = path;
    }
    return set;
  }

  /** Tells of every hook that has run, in order, for as long as the process lives. */
  watch(tell: (sign: JobSign) => void, failed: (error: unknown) => void): void {
    setTimeout(() => {
      this.look(tell)
        .catch(failed)
        .finally(() => this.watch(tell, failed));
    }, LOOK_MS);
  }

  /** Tells of what was noted since the last look. */
  async look(tell: (sign: JobSign) => void): Promise<void> {
    const text = await this.#pending.track(readFile(this.#file, 'utf8'));
    const end = text.lastIndexOf('\n') + 1;
    const lines = text.slice(this.#read, end).split('\n');
    this.#read = end;
    for (const line of lines) {
      if (line === 'started') tell('hookStarted');
      else if (line === 'completed') tell('hookEnded');
    }
  }
}
