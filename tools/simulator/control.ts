import type { ActiveFault, Fault } from './faults.ts';
import type { SimulatedToken, VersionDeadline, WebhookTarget } from './options.ts';
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
import type { ScaleSet } from './scaleSets.ts';
import type { World } from './world.ts';

/** Controls a simulator and reads its actual state. */
export class Control {
  /** The inside, for the HTTP faces. */
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  /**
   * Queues a job. The runner that has waited longest and has its labels gets it.
   * @throws Error if the repository is invalid
   */
  queueJob(spec: JobSpec): SimulatedJob {
    return structuredClone(this.world.dispatch.queueJob(spec));
  }

  /** Cancels a job as a user would. @throws Error for an unknown id */
  cancelJob(id: number): SimulatedJob {
    const job = this.world.jobs.get(id);
    if (!job) throw new Error(`simulator: no job ${id}`);
    this.world.dispatch.cancelJob(job);
    return structuredClone(job);
  }

  job(id: number): SimulatedJob | undefined {
    return structuredClone(this.world.jobs.get(id));
  }

  /** All jobs, the oldest first. */
  jobs(): SimulatedJob[] {
    return structuredClone(this.world.jobs.all());
  }

  /** Returns all registrations, independent of faults of the REST API. */
  runners(): SimulatedRegistration[] {
    return this.world.registrations.all().map((registration) => this.world.describe(registration));
  }

  /** The registration of that name, in any scope. */
  runner(name: string): SimulatedRegistration | undefined {
    return this.runners().find((runner) => runner.name === name);
  }

  /**
   * Removes a registration as an owner does in the web interface, even if it is busy. Its job
   * continues.
   */
  removeRunner(id: number): boolean {
    const registration = this.world.registrations.get(id);
    if (registration) this.world.dispatch.remove(registration);
    return registration !== undefined;
  }

  /** All scale sets. */
  scaleSets(): SimulatedScaleSet[] {
    return structuredClone(this.world.scaleSets.describe());
  }

  /** The scale set of that name, in any scope. */
  scaleSet(name: string): SimulatedScaleSet | undefined {
    return this.scaleSets().find((set) => set.name === name);
  }

  /** Another process opens the session of the scale set. @throws Error when there is one */
  holdScaleSet(name: string, owner: string): void {
    if (!this.world.scaleSets.openSession(this.#scaleSet(name), owner))
      throw new Error(`simulator: scale set ${name} has a session`);
  }

  /** Ends the session of the scale set, as GitHub's broker does. */
  evictScaleSet(name: string): void {
    this.world.scaleSets.endSession(this.#scaleSet(name));
  }

  /** The session's token is accepted no longer. */
  expireScaleSetToken(name: string): void {
    const { session } = this.#scaleSet(name);
    if (session) session.token = '';
    this.world.changes.bump();
  }

  /** No token of the Actions service is accepted any longer. */
  expireTenantTokens(): void {
    this.world.tenantTokens.clear();
  }

  /** Removes a scale set as an owner would in the web interface. */
  removeScaleSet(name: string): void {
    this.world.removeScaleSet(this.#scaleSet(name));
  }

  #scaleSet(name: string): ScaleSet {
    const found = this.scaleSet(name);
    const set = found && this.world.scaleSets.byId(found.id);
    if (!set) throw new Error(`simulator: no scale set ${name}`);
    return set;
  }

  addFault(fault: Fault): ActiveFault {
    return this.world.faults.add(fault);
  }

  /** Returns the active faults, with the number of times that each occurred. */
  faults(): ActiveFault[] {
    return this.world.faults.list();
  }

  /** Switches one fault off, or all of them. */
  clearFaults(id?: string): void {
    this.world.faults.clear(id);
  }

  /** Requests to the REST API, counted by endpoint. */
  requestCounts(): RequestCounts {
    return this.world.requests.counts();
  }

  /** The latest requests to the REST API one by one, the oldest first. */
  requests(): RecordedRequest[] {
    return this.world.requests.list();
  }

  resetRequests(): void {
    this.world.requests.reset();
  }

  addToken(token: SimulatedToken): void {
    this.world.credentials.addToken(token);
  }

  /** From now on that token answers 401. */
  revokeToken(token: string): void {
    this.world.credentials.revokeToken(token);
  }

  /**
   * Changes what the credential with this name can access (`app-<app>-<installation>` for an
   * App's).
   */
  setAccess(
    credential: string,
    access: { scopes?: ScopePath[]; permission?: 'admin' | 'read' },
  ): void {
    this.world.credentials.setAccess(credential, access);
  }

  /** Sets the remaining hourly budget of a credential. */
  setRateLimit(
    credential: string,
    state: { limit?: number; remaining?: number; resetInMs?: number },
  ): void {
    this.world.limits.set(credential, state);
  }

  setWebhook(target: WebhookTarget | undefined): void {
    this.world.webhooks.target = target;
  }

  /** Runner versions the server refuses from now on (`*`: all). */
  setDeprecatedVersions(versions: string[]): void {
    this.world.settings.deprecatedVersions = versions;
  }

  /** Until when each runner version is accepted, by version. */
  setVersionDeadlines(deadlines: Record<string, VersionDeadline>): void {
    this.world.settings.versionDeadlines = deadlines;
  }

  setBusyText(text: 'current' | 'older'): void {
    this.world.settings.busyText = text;
  }

  /** All deliveries, the oldest first. */
  deliveries(): WebhookDelivery[] {
    return this.world.webhooks.deliveries();
  }

  /** @throws Error for an unknown id */
  redeliver(id: number): WebhookDelivery {
    const delivery = this.world.webhooks.redeliver(id);
    if (!delivery) throw new Error(`simulator: no delivery ${id}`);
    return delivery;
  }

  /** Sends the webhooks that a shuffle still holds back. */
  releaseWebhooks(): void {
    this.world.webhooks.releaseDelayed();
  }

  /**
   * Resolves with the first truthy value of `probe`, which is evaluated after every change of the
   * simulator's state.
   * @param what - expected state, for the error
   * @param timeoutMs - default 30 s
   */
  async waitFor<T>(
    probe: (simulator: this) => T,
    what = 'the condition',
    timeoutMs = 60_000,
  ): Promise<NonNullable<T>> {
    return this.world.changes.waitFor(() => probe(this), what, timeoutMs);
  }

  /** Waits until a job is at that status (or has passed it). */
  async waitForJob(
    id: number,
    status: 'in_progress' | 'completed',
    timeoutMs = 60_000,
  ): Promise<SimulatedJob> {
    const reached = (job: SimulatedJob | undefined): boolean =>
      job?.status === status || job?.status === 'completed';
    const job = await this.waitFor(
      () => (reached(this.world.jobs.get(id)) ? this.world.jobs.get(id) : undefined),
      `job ${id} ${status}`,
      timeoutMs,
    );
    return structuredClone(job);
  }
}
