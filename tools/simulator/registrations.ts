import { randomBytes } from 'node:crypto';
import type { ScopePath } from './types.ts';

export interface RunnerLabel {
  id: number;
  name: string;
  type: 'read-only' | 'custom';
}

/** One registered runner. */
export interface Registration {
  id: number;
  name: string;
  scope: ScopePath;
  groupId: number;
  labels: RunnerLabel[];
  ephemeral: boolean;
  jit: boolean;
  /** The scale set it belongs to. */
  scaleSetId?: number;
  os: string;
  version: string | null;
  /** Secret by which the runner is known to the runner protocol. */
  credential: string;
  /** The job it was given and has not ended. */
  jobId?: number;
  /** A single-use registration between its job's end and its removal: still shown as busy. */
  finishing?: boolean;
  /** Time of its latest request, or of its creation (ms since the epoch). */
  lastSeenMs: number;
  /**
   * Whether it was removed during a job. The job continues, and the runner learns of the removal
   * afterwards.
   */
  removed?: boolean;
}

const READ_ONLY_LABELS = new Set([
  'self-hosted',
  'linux',
  'macos',
  'windows',
  'x64',
  'arm',
  'arm64',
]);

export interface NewRegistration {
  name: string;
  scope: ScopePath;
  groupId: number;
  labels: readonly string[];
  ephemeral: boolean;
  jit: boolean;
  scaleSetId?: number;
}

/** All registrations, found by id, by name within a scope, and by the runner's own credential. */
export class Registrations {
  #byId = new Map<number, Registration>();
  #byName = new Map<string, Registration>();
  #byCredential = new Map<string, Registration>();
  #byScope = new Map<string, Map<number, Registration>>();
  #nextId = 1;
  #labelIds = new Map<string, number>();

  /** @returns undefined when the name is taken in that scope */
  add(request: NewRegistration): Registration | undefined {
    if (this.byName(request.scope, request.name)) return undefined;
    const registration: Registration = {
      ...request,
      id: this.#nextId++,
      labels: request.labels.map((name) => this.#label(name)),
      os: request.jit ? 'unknown' : 'linux',
      version: null,
      credential: randomBytes(24).toString('base64url'),
      lastSeenMs: Date.now(),
    };
    this.#index(registration);
    return registration;
  }

  byId(scope: ScopePath, id: number): Registration | undefined {
    return this.#byScope.get(scope.toLowerCase())?.get(id);
  }

  get(id: number): Registration | undefined {
    return this.#byId.get(id);
  }

  byName(scope: ScopePath, name: string): Registration | undefined {
    return this.#byName.get(nameKey(scope, name));
  }

  /** Finds also one that was removed while it had a job, until that job has ended. */
  byCredential(credential: string): Registration | undefined {
    return this.#byCredential.get(credential);
  }

  /** Returns the registrations of one scope, sorted by id. */
  list(scope: ScopePath): Registration[] {
    return [...(this.#byScope.get(scope.toLowerCase())?.values() ?? [])];
  }

  all(): Registration[] {
    return [...this.#byId.values()];
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Takes it off the lists. One that has a job stays known to its own runner. */
  remove(registration: Registration): void {
    registration.removed = true;
    this.#byId.delete(registration.id);
    this.#byName.delete(nameKey(registration.scope, registration.name));
    this.#byScope.get(registration.scope.toLowerCase())?.delete(registration.id);
    if (registration.jobId === undefined) this.#byCredential.delete(registration.credential);
  }

  /** Its job ended after it had been removed. */
  forget(registration: Registration): void {
    this.#byCredential.delete(registration.credential);
  }

  /** Everything that must survive a restart. */
  dump(): { nextId: number; registrations: Registration[] } {
    return { nextId: this.#nextId, registrations: [...this.#byCredential.values()] };
  }

  restore(saved: { nextId: number; registrations: Registration[] }): void {
    this.#nextId = saved.nextId;
    for (const registration of saved.registrations) {
      if (registration.removed) this.#byCredential.set(registration.credential, registration);
      else this.#index(registration);
    }
  }

  #index(registration: Registration): void {
    this.#byId.set(registration.id, registration);
    this.#byName.set(nameKey(registration.scope, registration.name), registration);
    this.#byCredential.set(registration.credential, registration);
    const scope = registration.scope.toLowerCase();
    const inScope = this.#byScope.get(scope) ?? new Map<number, Registration>();
    inScope.set(registration.id, registration);
    this.#byScope.set(scope, inScope);
  }

  #label(name: string): RunnerLabel {
    const key = name.toLowerCase();
    const id = this.#labelIds.get(key) ?? this.#labelIds.size + 1;
    this.#labelIds.set(key, id);
    return { id, name, type: READ_ONLY_LABELS.has(key) ? 'read-only' : 'custom' };
  }
}

const nameKey = (scope: ScopePath, name: string): string => `${scope}|${name}`.toLowerCase();
