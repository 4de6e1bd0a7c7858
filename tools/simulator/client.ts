import type { ActiveFault, Fault } from './faults.ts';
import type { SimulatedToken, WebhookTarget } from './options.ts';
import type {
  JobSpec,
  RecordedRequest,
  RequestCounts,
  ScopePath,
  SimulatedJob,
  SimulatedRegistration,
  SimulatedScaleSet,
  WebhookDelivery,
} from './types.ts';

/**
 * Controls a simulator in another process through its control API. Every method throws an Error if
 * the simulator rejects the request or is unreachable.
 */
export class SimulatorClient {
  readonly url: string;

  /** @param url where the simulator listens */
  constructor(url: string) {
    this.url = url.replace(/\/$/, '');
  }

  /** Returns the simulator's URL and its change counter. */
  health(): Promise<{ url: string; version: number }> {
    return this.#get('health');
  }
  queueJob(spec: JobSpec): Promise<SimulatedJob> {
    return this.#call('POST', 'jobs', spec);
  }
  cancelJob(id: number): Promise<SimulatedJob> {
    return this.#call('POST', `jobs/${id}/cancel`);
  }
  /** @throws Error for an unknown id */
  job(id: number): Promise<SimulatedJob> {
    return this.#get(`jobs/${id}`);
  }
  jobs(): Promise<SimulatedJob[]> {
    return this.#get('jobs');
  }
  runners(): Promise<SimulatedRegistration[]> {
    return this.#get('runners');
  }
  async runner(name: string): Promise<SimulatedRegistration | undefined> {
    return (await this.runners()).find((runner) => runner.name === name);
  }
  async removeRunner(id: number): Promise<boolean> {
    return (await this.#call<{ removed: boolean }>('DELETE', `runners/${id}`)).removed;
  }
  scaleSets(): Promise<SimulatedScaleSet[]> {
    return this.#get('scale-sets');
  }
  async scaleSet(name: string): Promise<SimulatedScaleSet | undefined> {
    return (await this.scaleSets()).find((set) => set.name === name);
  }
  addFault(fault: Fault): Promise<ActiveFault> {
    return this.#call('POST', 'faults', fault);
  }
  faults(): Promise<ActiveFault[]> {
    return this.#get('faults');
  }
  clearFaults(id?: string): Promise<void> {
    return this.#call('DELETE', id === undefined ? 'faults' : `faults/${id}`);
  }
  requestCounts(): Promise<RequestCounts> {
    return this.#get('requests/counts');
  }
  requests(): Promise<RecordedRequest[]> {
    return this.#get('requests');
  }
  resetRequests(): Promise<void> {
    return this.#call('DELETE', 'requests');
  }
  addToken(token: SimulatedToken): Promise<void> {
    return this.#call('POST', 'tokens', token);
  }
  revokeToken(token: string): Promise<void> {
    return this.#call('POST', 'tokens/revoke', { token });
  }
  setAccess(
    credential: string,
    access: { scopes?: ScopePath[]; permission?: 'admin' | 'read' },
  ): Promise<void> {
    return this.#call('PUT', `credentials/${encodeURIComponent(credential)}/access`, access);
  }
  setRateLimit(
    credential: string,
    state: { limit?: number; remaining?: number; resetInMs?: number },
  ): Promise<void> {
    return this.#call('PUT', `credentials/${encodeURIComponent(credential)}/rate-limit`, state);
  }
  setWebhook(target: WebhookTarget | undefined): Promise<void> {
    return this.#call('PUT', 'webhook', target ?? null);
  }
  setDeprecatedVersions(versions: string[]): Promise<void> {
    return this.#call('PUT', 'deprecated-versions', versions);
  }
  setBusyText(text: 'current' | 'older'): Promise<void> {
    return this.#call('PUT', 'busy-text', { text });
  }
  deliveries(): Promise<WebhookDelivery[]> {
    return this.#get('deliveries');
  }
  redeliver(id: number): Promise<WebhookDelivery> {
    return this.#call('POST', `deliveries/${id}/redeliver`);
  }
  releaseWebhooks(): Promise<void> {
    return this.#call('POST', 'deliveries/release');
  }

  /**
   * Resolves with the first truthy value of `probe`, which is evaluated after every change of the
   * simulator's state.
   * @param what - expected state, for the error
   * @param timeoutMs - default 30 s
   */
  async waitFor<T>(
    probe: (simulator: this) => Promise<T>,
    what = 'the condition',
    timeoutMs = 60_000,
  ): Promise<NonNullable<T>> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const { version } = await this.health();
      const value = await probe(this);
      if (value) return value;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`simulator: ${what} did not happen within ${timeoutMs} ms`);
      await this.#get(`changes?after=${version}&timeoutMs=${Math.min(left, 1000)}`);
    }
  }

  /** Waits until a job is at that status (or has passed it). */
  waitForJob(
    id: number,
    status: 'in_progress' | 'completed',
    timeoutMs = 60_000,
  ): Promise<SimulatedJob> {
    const probe = async (): Promise<SimulatedJob | undefined> => {
      const job = await this.job(id);
      return job.status === status || job.status === 'completed' ? job : undefined;
    };
    return this.waitFor(probe, `job ${id} ${status}`, timeoutMs);
  }

  #get<T>(path: string): Promise<T> {
    return this.#call('GET', path);
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const json =
      body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await fetch(`${this.url}/_sim/${path}`, { method, ...json });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`simulator: ${method} /_sim/${path} answered ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}
