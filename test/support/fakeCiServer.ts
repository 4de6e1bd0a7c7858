import { CiServerError } from '../../activities/ports/ciServerError.ts';
import {
  UnknownCredentialError,
  type CiRunner,
  type CiServer,
  type CiServers,
  type Registration,
} from '../../activities/ports/ciServer.ts';
import type { JobReruns } from '../../activities/ports/jobReruns.ts';
import type { ScaleSets } from '../../activities/ports/scaleSets.ts';
import type { RegisterRequest, Scope } from '../../core/domain/ciServer.ts';
import { DEFAULT_JOB_LIMITS, type CiServerTraits } from '../../core/domain/ciServerTraits.ts';

/** Traits of a server that rejects a removal that would end a job. */
const TRAITS: CiServerTraits = {
  refusesBusyRemoval: true,
  canDisable: false,
  singleUseRegistration: true,
  runnerOutlivesRegistration: false,
  groups: { defaultId: '1' },
  jobLimits: DEFAULT_JOB_LIMITS,
};

type Method = 'register' | 'find' | 'remove' | 'disable';
interface Entry {
  id: string;
  name: string;
  online: boolean;
  busy: boolean;
  labels?: readonly string[];
}

/**
 * A CI server in memory whose responses a test controls. The adapters have tests of their own with
 * the simulator.
 */
export class FakeCiServer implements CiServer, CiServers {
  readonly kind = 'github';
  traits: CiServerTraits = TRAITS;
  readonly registrations = new Map<string, Entry>();
  readonly calls: { method: Method; name?: string; id?: string }[] = [];
  /**
   * Responses of the next calls of a method, which replace the actual state. `repeat` uses the last
   * one forever.
   */
  readonly script: { method: Method; answer: Error | 'removed' | 'absent'; repeat?: boolean }[] =
    [];
  /** Reruns. If absent, jobs cannot be rerun. */
  reruns?: JobReruns;
  /** Scale sets. If absent, the server has none. */
  scaleSets?: ScaleSets;
  /** Deadlines of runner versions. If absent, the server has none. */
  versionDeadline?: NonNullable<CiServer['versionDeadline']>;
  /** Whether DELETE responds with 204 although a job is running, like GitHub in a job's first minute. */
  lies = false;
  /** Runners that have the next requested names. */
  readonly strangers: { online: boolean; busy: boolean }[] = [];
  /** Runs when a runner is looked up. */
  beforeFind?: () => void;
  /** A promise that a DELETE waits for before its response. */
  removalHeld: Promise<void> | undefined;
  #nextId = 1;

  get(credential = 'default'): CiServer {
    if (credential !== 'default')
      throw new UnknownCredentialError(
        `unknown credential "${credential}": the worker's config names default`,
      );
    return this;
  }

  async register(request: RegisterRequest): Promise<Registration> {
    this.calls.push({ method: 'register', name: request.name });
    this.#scripted('register');
    const stranger = this.strangers.shift();
    if (stranger !== undefined)
      Object.assign(this.registrations.get(this.connect(request.name)) ?? {}, stranger);
    if (request.mode === 'token')
      return { runnerName: request.name, env: { RUNNER_TOKEN: 'AAAA-SECRET-TOKEN' } };
    if ([...this.registrations.values()].some((entry) => entry.name === request.name))
      throw new CiServerError('name_taken', `Already exists - ${request.name}`, { status: 409 });
    const id = this.connect(request.name, false);
    return {
      runnerName: request.name,
      runnerId: id,
      env: { ACTIONS_RUNNER_INPUT_JITCONFIG: 'SECRET-JIT-CONFIG' },
    };
  }

  async findRunner(
    _scope: Scope,
    runner: { id?: string; name: string },
  ): Promise<CiRunner | undefined> {
    this.calls.push({ method: 'find', ...runner });
    this.beforeFind?.();
    if (this.#scripted('find') !== undefined) return undefined;
    const found = [...this.registrations.values()].find((entry) =>
      runner.id === undefined ? entry.name === runner.name : entry.id === runner.id,
    );
    return found && { labels: [], ...found };
  }

  async listRunners(): Promise<CiRunner[]> {
    return [...this.registrations.values()].map((entry) => ({ labels: [], ...entry }));
  }

  async removeRegistration(_scope: Scope, id: string): Promise<'removed' | 'absent'> {
    this.calls.push({ method: 'remove', id });
    await this.removalHeld;
    const scripted = this.#scripted('remove');
    if (scripted !== undefined) return scripted;
    const entry = this.registrations.get(id);
    if (entry === undefined) return 'absent';
    if (entry.busy && this.traits.refusesBusyRemoval && !this.lies) throw busy(entry.name);
    this.registrations.delete(id);
    return 'removed';
  }

  async disable(_scope: Scope, id: string): Promise<void> {
    this.calls.push({ method: 'disable', id });
  }

  // ------------------------------------------------------------------------ what the test controls

  /** A runner registers itself (token), or is known (JIT) and offline until it connects. */
  connect(name: string, online = true, labels?: readonly string[]): string {
    const existing = [...this.registrations.values()].find((entry) => entry.name === name);
    if (existing !== undefined) {
      existing.online = online;
      return existing.id;
    }
    const id = String(this.#nextId++);
    this.registrations.set(id, { id, name, online, busy: false, ...(labels && { labels }) });
    return id;
  }

  setBusy(name: string, value: boolean): void {
    for (const entry of this.registrations.values()) if (entry.name === name) entry.busy = value;
  }

  forget(name: string): void {
    for (const entry of this.registrations.values())
      if (entry.name === name) this.registrations.delete(entry.id);
  }

  count(method: Method): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  #scripted(method: Method): 'removed' | 'absent' | undefined {
    const index = this.script.findIndex((step) => step.method === method);
    const step = this.script[index];
    if (step === undefined) return undefined;
    if (step.repeat !== true) this.script.splice(index, 1);
    if (step.answer instanceof Error) throw step.answer;
    return step.answer;
  }
}

export function busy(name = 'x'): CiServerError {
  return new CiServerError('busy', `Bad request - Runner "${name}" is still running a job"`, {
    status: 422,
  });
}
