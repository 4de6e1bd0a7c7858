import { randomBytes, randomUUID } from 'node:crypto';
import type { Changes } from './changes.ts';
import type { Settings } from './options.ts';
import type { Registration } from './registrations.ts';
import { labelsCover, scopeServes } from './scope.ts';
import type { ScopePath, SimulatedJob, SimulatedScaleSet } from './types.ts';

/** Most entries of one message. */
const MAX_ENTRIES = 50;
/** How often a job is assigned before GitHub fails it. */
const MAX_ASSIGNMENTS = 3;

export interface ScaleSetSession {
  readonly id: string;
  readonly owner: string;
  token: string;
  lastSeenMs: number;
  /** Open polls. */
  polls: number;
}

/** One entry of a message, as GitHub's clients read it. */
export type Entry = Readonly<Record<string, unknown>>;

export interface Message {
  readonly id: number;
  readonly entries: readonly Entry[];
}

/** A scale set: its jobs, its session and the messages for it. */
export interface ScaleSet {
  readonly id: number;
  name: string;
  readonly scope: ScopePath;
  groupId: number;
  labels: string[];
  readonly createdOn: string;
  session?: ScaleSetSession;
  /** Capacity in the latest poll. */
  capacity: number;
  /** All capacities of polls, in order, without repetitions. */
  readonly capacities: number[];
  readonly pending: Entry[];
  readonly unacknowledged: Map<number, Message>;
  nextMessageId: number;
  readonly available: Set<number>;
  readonly assigned: Set<number>;
  readonly running: Set<number>;
}

interface Assignment {
  readonly scaleSetId: number;
  times: number;
  timer?: NodeJS.Timeout;
}

/** Functions of the simulator that the service calls. */
export interface ScaleSetNeeds {
  readonly settings: Settings;
  readonly changes: Changes;
  readonly jobs: { get(id: number): SimulatedJob | undefined; queued(): Iterable<SimulatedJob> };
  readonly registrations: { all(): Registration[] };
  readonly busy: (registration: Registration) => boolean;
  /** Offers the waiting jobs of a scale set to its listening runners. */
  readonly offer: (job: SimulatedJob) => void;
}

/** The scale sets and their message queues: https://github.com/actions/scaleset */
export class ScaleSets {
  readonly #needs: ScaleSetNeeds;
  #sets = new Map<number, ScaleSet>();
  #assignments = new Map<number, Assignment>();
  #nextId = 1;

  constructor(needs: ScaleSetNeeds) {
    this.#needs = needs;
  }

  get(scope: ScopePath, id: number): ScaleSet | undefined {
    const set = this.#sets.get(id);
    return set !== undefined && sameText(set.scope, scope) ? set : undefined;
  }

  byId(id: number): ScaleSet | undefined {
    return this.#sets.get(id);
  }

  list(scope: ScopePath, groupId?: number, name?: string): ScaleSet[] {
    return [...this.#sets.values()].filter(
      (set) =>
        sameText(set.scope, scope) &&
        (groupId === undefined || set.groupId === groupId) &&
        (name === undefined || sameText(set.name, name)),
    );
  }

  /** @returns undefined when the name is taken in the group */
  create(wanted: {
    scope: ScopePath;
    name: string;
    groupId: number;
    labels: readonly string[];
  }): ScaleSet | undefined {
    if (this.list(wanted.scope, wanted.groupId, wanted.name).length > 0) return undefined;
    const set: ScaleSet = {
      ...wanted,
      id: this.#nextId++,
      labels: this.#labels(wanted.name, wanted.labels),
      createdOn: new Date().toISOString(),
      capacity: 0,
      capacities: [],
      pending: [],
      unacknowledged: new Map(),
      nextMessageId: 1,
      available: new Set(),
      assigned: new Set(),
      running: new Set(),
    };
    this.#sets.set(set.id, set);
    this.#needs.changes.bump();
    return set;
  }

  update(set: ScaleSet, change: { name?: string; labels?: readonly string[] }): void {
    set.name = change.name ?? set.name;
    if (change.labels !== undefined) set.labels = this.#labels(set.name, change.labels);
    this.offerJobs();
  }

  /** Removes the set. Its waiting jobs become available to others. */
  remove(set: ScaleSet): void {
    this.#sets.delete(set.id);
    for (const id of [...set.available, ...set.assigned]) this.#forget(id);
    this.offerJobs();
  }

  /**
   * Opens a session.
   * @returns undefined if there is another session
   */
  openSession(set: ScaleSet, owner: string): ScaleSetSession | undefined {
    this.expireSilent(set);
    if (set.session) return undefined;
    set.session = {
      id: randomUUID(),
      owner,
      token: newToken(),
      lastSeenMs: Date.now(),
      polls: 0,
    };
    this.#needs.changes.bump();
    return set.session;
  }

  /** The session of that id, unless it was silent for too long. */
  session(set: ScaleSet, id: string): ScaleSetSession | undefined {
    this.expireSilent(set);
    return set.session?.id === id ? set.session : undefined;
  }

  endSession(set: ScaleSet): void {
    delete set.session;
    this.#needs.changes.bump();
  }

  expireSilent(set: ScaleSet): void {
    const { session } = set;
    if (
      session &&
      session.polls === 0 &&
      Date.now() - session.lastSeenMs > this.#needs.settings.scaleSetSessionMs
    )
      this.endSession(set);
  }

  /** The poll's capacity decides how many jobs the set is offered from now on. */
  setCapacity(set: ScaleSet, capacity: number): void {
    if (set.capacities.at(-1) !== capacity) set.capacities.push(capacity);
    set.capacity = capacity;
    this.offerJobs();
  }

  /** The oldest unacknowledged message after `last`, or a new one. */
  nextMessage(set: ScaleSet, last: number): Message | undefined {
    for (const message of set.unacknowledged.values()) if (message.id > last) return message;
    if (set.pending.length === 0) return undefined;
    const message = { id: set.nextMessageId++, entries: set.pending.splice(0, MAX_ENTRIES) };
    set.unacknowledged.set(message.id, message);
    return message;
  }

  /** @returns the ids that are the set's now; acquiring twice is harmless */
  acquire(set: ScaleSet, ids: readonly number[]): number[] {
    const acquired = ids.filter((id) => {
      if (set.available.delete(id)) {
        set.assigned.add(id);
        this.#announce(set, id, 'JobAssigned');
        return true;
      }
      return set.assigned.has(id) || set.running.has(id);
    });
    for (const id of acquired) {
      const job = this.#needs.jobs.get(id);
      if (job?.status === 'queued') this.#needs.offer(job);
    }
    this.#needs.changes.bump();
    return acquired;
  }

  /** Whether a runner may have the job, as far as scale sets are concerned. */
  permits(registration: Registration, job: SimulatedJob): boolean {
    const at = this.#assignments.get(job.id);
    const set = at && this.#sets.get(at.scaleSetId);
    if (registration.scaleSetId === undefined) return set?.assigned.has(job.id) !== true;
    return at?.scaleSetId === registration.scaleSetId && set?.assigned.has(job.id) === true;
  }

  /** Handles a change of a job. */
  jobChanged(action: 'queued' | 'in_progress' | 'completed', job: SimulatedJob): void {
    const at = this.#assignments.get(job.id);
    const set = at && this.#sets.get(at.scaleSetId);
    if (action === 'in_progress' && set?.assigned.delete(job.id) === true) {
      set.running.add(job.id);
      clearTimeout(at?.timer);
      this.#announce(set, job.id, 'JobStarted');
    }
    if (action === 'completed') {
      const own = set && [set.available, set.assigned, set.running];
      if (set && own?.some((jobs) => jobs.delete(job.id)))
        this.#announce(set, job.id, 'JobCompleted');
      this.#forget(job.id);
      this.offerJobs();
    }
  }

  statistics(set: ScaleSet): Record<string, number> {
    const runners = this.#needs.registrations
      .all()
      .filter(({ scaleSetId }) => scaleSetId === set.id);
    const busy = runners.filter((runner) => this.#needs.busy(runner)).length;
    return {
      totalAvailableJobs: set.available.size,
      totalAcquiredJobs: set.assigned.size + set.running.size,
      totalAssignedJobs: set.assigned.size + set.running.size,
      totalRunningJobs: set.running.size,
      totalRegisteredRunners: runners.length,
      totalBusyRunners: busy,
      totalIdleRunners: runners.length - busy,
    };
  }

  describe(): SimulatedScaleSet[] {
    return [...this.#sets.values()].map((set) => ({
      id: set.id,
      name: set.name,
      scope: set.scope,
      groupId: set.groupId,
      labels: set.labels,
      capacity: set.capacity,
      capacities: set.capacities,
      ...(set.session ? { session: { id: set.session.id, owner: set.session.owner } } : {}),
      available: set.available.size,
      assigned: set.assigned.size,
      running: set.running.size,
      unacknowledged: set.unacknowledged.size,
      undelivered: set.pending.length,
    }));
  }

  stop(): void {
    for (const { timer } of this.#assignments.values()) clearTimeout(timer);
  }

  #labels(name: string, labels: readonly string[]): string[] {
    return this.#needs.settings.scaleSetLabels === 'name' || labels.length === 0
      ? [name]
      : [...labels];
  }

  /** Offers waiting jobs to scale sets that have room for them. */
  offerJobs(): void {
    const open = [...this.#sets.values()].filter((set) => hasRoom(set));
    if (open.length === 0) return this.#needs.changes.bump();
    for (const job of this.#needs.jobs.queued()) {
      if (this.#assignments.has(job.id)) continue;
      const set = open.find((each) => hasRoom(each) && this.#serves(each, job));
      if (set) this.#makeAvailable(set, job.id);
      if (!open.some((each) => hasRoom(each))) break;
    }
    this.#needs.changes.bump();
  }

  #serves(set: ScaleSet, job: SimulatedJob): boolean {
    return (
      labelsCover(set.labels, job.labels) &&
      scopeServes(set.scope, job.repo, this.#needs.settings.enterprises)
    );
  }

  #makeAvailable(set: ScaleSet, id: number): void {
    set.available.add(id);
    const at: Assignment = { scaleSetId: set.id, times: 1 };
    this.#assignments.set(id, at);
    this.#announce(set, id, 'JobAvailable');
    const again = (): void => {
      const waits = set.assigned.delete(id) || set.available.delete(id);
      if (!waits) return;
      at.times++;
      if (at.times > MAX_ASSIGNMENTS) return this.#forget(id);
      set.available.add(id);
      this.#announce(set, id, 'JobAvailable');
      this.#needs.changes.bump();
      at.timer = setTimeout(again, this.#needs.settings.scaleSetAssignMs).unref();
    };
    at.timer = setTimeout(again, this.#needs.settings.scaleSetAssignMs).unref();
  }

  #forget(id: number): void {
    const at = this.#assignments.get(id);
    clearTimeout(at?.timer);
    const set = at && this.#sets.get(at.scaleSetId);
    for (const jobs of [set?.available, set?.assigned, set?.running]) jobs?.delete(id);
    this.#assignments.delete(id);
  }

  #announce(set: ScaleSet, id: number, messageType: string): void {
    const job = this.#needs.jobs.get(id);
    if (!job) return;
    const [ownerName, repositoryName] = job.repo.split('/');
    const zero = '0001-01-01T00:00:00Z';
    set.pending.push({
      messageType,
      runnerRequestId: job.id,
      repositoryName,
      ownerName,
      jobId: `simulated-${job.id}`,
      jobWorkflowRef: `${job.repo}/.github/workflows/ci.yml@refs/heads/main`,
      jobDisplayName: job.name,
      workflowRunId: job.run_id,
      eventName: 'push',
      requestLabels: job.labels,
      queueTime: job.created_at,
      scaleSetAssignTime: messageType === 'JobAvailable' ? zero : new Date().toISOString(),
      runnerAssignTime: job.started_at ?? zero,
      finishTime: job.completed_at ?? zero,
      ...(messageType === 'JobAvailable' ? { acquireJobUrl: '' } : {}),
      ...(messageType === 'JobStarted' || messageType === 'JobCompleted'
        ? { runnerId: job.runner_id ?? 0, runnerName: job.runner_name ?? '' }
        : {}),
      ...(messageType === 'JobCompleted' ? { result: RESULTS[job.conclusion ?? 'failure'] } : {}),
    });
  }
}

const RESULTS = { success: 'succeeded', failure: 'failed', cancelled: 'canceled' } as const;

const hasRoom = (set: ScaleSet): boolean =>
  set.session !== undefined &&
  set.available.size + set.assigned.size + set.running.size < set.capacity;

export const newToken = (): string => randomBytes(24).toString('base64url');
const sameText = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
