import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Jobs } from './jobs.ts';
import type { Registrations } from './registrations.ts';
import type { World } from './world.ts';

interface Saved {
  registrations: ReturnType<Registrations['dump']>;
  jobs: ReturnType<Jobs['dump']>;
}

/**
 * Stores registrations and jobs in a file, so that a restart keeps them. Only the owner can read it
 * (mode 0600), because it contains the runners' credentials.
 */
export class StateFile {
  readonly #path: string;
  readonly #world: World;
  #savedVersion = 0;

  constructor(path: string, world: World) {
    this.#path = path;
    this.#world = world;
    setInterval(() => this.save(), 200).unref();
  }

  load(): void {
    if (!existsSync(this.#path)) return;
    const saved = JSON.parse(readFileSync(this.#path, 'utf8')) as Saved;
    this.#world.registrations.restore(saved.registrations);
    this.#world.jobs.restore(saved.jobs);
    this.#world.dispatch.resume();
  }

  /** Writes the file if anything has changed. */
  save(): void {
    const { version } = this.#world.changes;
    if (version === this.#savedVersion) return;
    const saved: Saved = {
      registrations: this.#world.registrations.dump(),
      jobs: this.#world.jobs.dump(),
    };
    writeFileSync(`${this.#path}.tmp`, JSON.stringify(saved), { mode: 0o600 });
    renameSync(`${this.#path}.tmp`, this.#path);
    this.#savedVersion = version;
  }
}
