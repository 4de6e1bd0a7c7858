import type { Changes } from './changes.ts';
import type { Jobs } from './jobs.ts';
import type { Settings } from './options.ts';
import type { Registration, Registrations } from './registrations.ts';
import type { JobMessage } from './runner/wire.ts';
import { labelsCover, scopeServes } from './scope.ts';
import type { ScaleSets } from './scaleSets.ts';
import { Sessions, type Session } from './sessions.ts';
import type { JobConclusion, JobResult, JobSpec, SimulatedJob } from './types.ts';

export type JobAction = 'queued' | 'in_progress' | 'completed';

const CONCLUSION: Record<JobResult, JobConclusion> = {
  Succeeded: 'success',
  Failed: 'failure',
  Canceled: 'cancelled',
};

/** Annotation of the official runner on a job that its own end interrupts (JobRunner.cs). */
const SHUTDOWN =
  'The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.';

/** Annotation of GitHub on a job that a user cancels. */
const cancelledBy = (login: string): string => `The run was canceled by @${login}.`;

/** Assigns jobs to runners, renews leases, and removes runners that have ended. */
export class Dispatch {
  readonly sessions: Sessions;
  readonly #settings: Settings;
  readonly #registrations: Registrations;
  readonly #jobs: Jobs;
  readonly #changes: Changes;
  readonly #onJob: (action: JobAction, job: SimulatedJob) => void;
  /** Scale sets. Their runners get the jobs assigned to the set, and no others. */
  readonly #scaleSets: Pick<ScaleSets, 'permits' | 'offerJobs'>;
  #leases = new Map<number, NodeJS.Timeout>();
  #startedMs = new Map<number, number>();

  constructor(
    settings: Settings,
    registrations: Registrations,
    jobs: Jobs,
    changes: Changes,
    onJob: (action: JobAction, job: SimulatedJob) => void,
    scaleSets: Pick<ScaleSets, 'permits' | 'offerJobs'>,
  ) {
    this.#settings = settings;
    this.#registrations = registrations;
    this.#jobs = jobs;
    this.#changes = changes;
    this.#onJob = onJob;
    this.#scaleSets = scaleSets;
    this.sessions = new Sessions(settings.offlineAfterMs, (session) => this.#assignTo(session));
  }

  queueJob(spec: JobSpec): SimulatedJob {
    const job = this.#jobs.queue(spec);
    this.#onJob('queued', job);
    this.#assignJob(job);
    if (job.status === 'queued') this.#scaleSets.offerJobs();
    this.#changes.bump();
    return job;
  }

  /** Sends a waiting job to a listening runner that can take it, if there is one. */
  offer(job: SimulatedJob): void {
    this.#assignJob(job);
  }

  /** A waiting job ends at once; a running one when its runner has stopped it. */
  cancelJob(job: SimulatedJob): void {
    if (job.status === 'completed') return;
    job.cancelRequested = true;
    job.annotation = cancelledBy('octocat');
    if (job.status === 'queued') this.#conclude(job, 'cancelled');
    else {
      const registration = this.#runnerOf(job);
      const session = registration && this.sessions.ofRunner(registration);
      if (session) this.sessions.send(session, { type: 'cancel', jobId: job.id });
    }
    this.#changes.bump();
  }

  /**
   * Ends these jobs immediately, whatever their runners do.
   * @param login - user who requested it
   */
  forceCancel(jobs: readonly SimulatedJob[], login: string): void {
    for (const job of jobs) {
      if (job.status === 'completed') continue;
      const registration = this.#runnerOf(job);
      const session = registration && this.sessions.ofRunner(registration);
      if (session) this.sessions.send(session, { type: 'cancel', jobId: job.id });
      if (!job.cancelRequested) job.annotation = cancelledBy(login);
      job.cancelRequested = true;
      this.#conclude(job, 'cancelled');
      if (registration) this.#free(registration, false);
    }
  }

  /** Queues the job again, in the next attempt of its run. Other jobs of the run do not change. */
  rerunJob(job: SimulatedJob): SimulatedJob {
    const { repo, labels, name, command, sleepMs, plannedResult, run_id, workflow_name } = job;
    const attempt = Math.max(...this.#jobs.ofRun(run_id).map((each) => each.run_attempt)) + 1;
    return this.queueJob({
      repo,
      labels,
      name,
      command,
      run_id,
      workflow_name,
      run_attempt: attempt,
      ...(sleepMs === undefined ? {} : { sleepMs }),
      ...(plannedResult === undefined ? {} : { result: plannedResult }),
    });
  }

  /** How long ago the runner's job was given to it, in ms; undefined when it has none. */
  busyForMs(registration: Registration): number | undefined {
    const since =
      registration.jobId === undefined ? undefined : this.#startedMs.get(registration.jobId);
    return since === undefined ? undefined : Date.now() - since;
  }

  /**
   * Records that the runner has started the job.
   * @returns false if the job is no longer assigned to it
   */
  startJob(registration: Registration, job: SimulatedJob): boolean {
    if (!holds(registration, job)) return false;
    if (job.status === 'assigned') {
      job.status = 'in_progress';
      job.started_at = new Date().toISOString();
      this.#onJob('in_progress', job);
      this.#changes.bump();
    }
    this.#lease(registration, job, this.#settings.leaseMs);
    return true;
  }

  /** @returns false when the lease had run out */
  renew(registration: Registration, job: SimulatedJob): boolean {
    if (!holds(registration, job)) return false;
    registration.lastSeenMs = Date.now();
    this.#lease(registration, job, this.#settings.leaseMs);
    return true;
  }

  addOutput(job: SimulatedJob, from: number, lines: readonly string[]): void {
    job.output.push(...lines.slice(Math.max(0, job.output.length - from)));
    this.#changes.bump();
  }

  complete(registration: Registration, job: SimulatedJob, result: JobResult): boolean {
    if (!holds(registration, job))
      return job.status === 'completed' && job.runner_id === registration.id;
    if (result === 'Canceled' && !job.cancelRequested) job.annotation = SHUTDOWN;
    this.#conclude(job, CONCLUSION[result]);
    this.#free(registration, true);
    return true;
  }

  /** Removes a registration. An idle runner learns of it immediately, a busy one after its job. */
  remove(registration: Registration): void {
    this.#registrations.remove(registration);
    if (registration.jobId === undefined) this.#dismiss(registration);
    this.#changes.bump();
  }

  /** After a restart: leases count from now. */
  resume(): void {
    for (const registration of this.#registrations.dump().registrations) {
      const job = registration.jobId === undefined ? undefined : this.#jobs.get(registration.jobId);
      if (job && job.status !== 'completed') this.#lease(registration, job, this.#settings.leaseMs);
      else if (registration.finishing) this.remove(registration);
    }
  }

  /** Removes registrations that have been offline for too long. */
  removeStale(now: number): void {
    const { ephemeral, static: lasting } = this.#settings.offlineRemovalMs;
    for (const registration of this.#registrations.all()) {
      const limitMs = registration.ephemeral ? ephemeral : lasting;
      if (
        registration.jobId === undefined &&
        !this.sessions.online(registration) &&
        now - registration.lastSeenMs > limitMs
      )
        this.remove(registration);
    }
  }

  stop(): void {
    for (const timer of this.#leases.values()) clearTimeout(timer);
    this.#leases.clear();
    this.sessions.stop();
  }

  #assignJob(job: SimulatedJob): void {
    for (const session of this.sessions.listening()) {
      if (this.#fits(session.registration, job)) {
        this.#give(session, job);
        return;
      }
    }
  }

  #assignTo(session: Session): void {
    this.#changes.bump();
    const job = this.#jobs.firstQueued((candidate) => this.#fits(session.registration, candidate));
    if (job) this.#give(session, job);
  }

  #fits(registration: Registration, job: SimulatedJob): boolean {
    return (
      job.status === 'queued' &&
      registration.jobId === undefined &&
      !registration.finishing &&
      !registration.removed &&
      this.#scaleSets.permits(registration, job) &&
      labelsCover(
        registration.labels.map((label) => label.name),
        job.labels,
      ) &&
      scopeServes(registration.scope, job.repo, this.#settings.enterprises)
    );
  }

  #give(session: Session, job: SimulatedJob): void {
    const { registration } = session;
    this.#jobs.dequeue(job);
    job.status = 'assigned';
    job.assignments++;
    job.runner_id = registration.id;
    job.runner_name = registration.name;
    job.runner_group_id = registration.groupId;
    job.runner_group_name = this.#groupName(registration);
    registration.jobId = job.id;
    this.#startedMs.set(job.id, Date.now());
    this.#lease(registration, job, this.#settings.acceptMs);
    const message: JobMessage = {
      type: 'job',
      id: job.id,
      name: job.name,
      runId: job.run_id,
      runAttempt: job.run_attempt,
      repo: job.repo,
      workflow: job.workflow_name,
      command: job.command,
      ...(job.sleepMs === undefined ? {} : { sleepMs: job.sleepMs }),
      ...(job.plannedResult === undefined ? {} : { plannedResult: job.plannedResult }),
      renewEveryMs: this.#settings.renewEveryMs,
    };
    this.sessions.send(session, message);
    this.#changes.bump();
  }

  #lease(registration: Registration, job: SimulatedJob, ms: number): void {
    clearTimeout(this.#leases.get(job.id));
    const timer = setTimeout(() => this.#expired(registration, job), ms);
    timer.unref();
    this.#leases.set(job.id, timer);
  }

  #expired(registration: Registration, job: SimulatedJob): void {
    if (!holds(registration, job)) return;
    if (job.status === 'assigned' && job.assignments < 3 && !job.cancelRequested) {
      this.#clearLease(job);
      this.#jobs.requeue(job);
      this.#free(registration, false);
      this.#assignJob(job);
      return;
    }
    job.annotation ??=
      `The self-hosted runner: ${registration.name} lost communication with the server. Verify the machine is running and has a healthy ` +
      'network connection. Anything in your workflow that terminates the runner process, starves it for CPU/Memory, or blocks its network access can cause this error.';
    this.#conclude(job, job.cancelRequested ? 'cancelled' : 'failure');
    this.#free(registration, false);
  }

  #conclude(job: SimulatedJob, conclusion: JobConclusion): void {
    this.#clearLease(job);
    this.#jobs.dequeue(job);
    job.status = 'completed';
    job.conclusion = conclusion;
    job.completed_at = new Date().toISOString();
    this.#onJob('completed', job);
    this.#changes.bump();
  }

  #clearLease(job: SimulatedJob): void {
    clearTimeout(this.#leases.get(job.id));
    this.#leases.delete(job.id);
    this.#startedMs.delete(job.id);
  }

  /** @param done the runner ended the job itself: a single-use one has then served */
  #free(registration: Registration, done: boolean): void {
    delete registration.jobId;
    if (registration.removed) {
      this.#registrations.forget(registration);
      this.#dismiss(registration);
    } else if (done && registration.ephemeral) {
      registration.finishing = true;
      if (this.#settings.ephemeralRemovalMs === 0) this.remove(registration);
      else setTimeout(() => this.remove(registration), this.#settings.ephemeralRemovalMs).unref();
    } else {
      const session = this.sessions.ofRunner(registration);
      if (session && (session.deliver || session.channel)) this.#assignTo(session);
    }
    this.#changes.bump();
  }

  #dismiss(registration: Registration): void {
    const session = this.sessions.ofRunner(registration);
    if (!session) return;
    this.sessions.send(session, { type: 'refused', reason: 'deleted' });
    this.sessions.close(session);
  }

  #runnerOf(job: SimulatedJob): Registration | undefined {
    const listed = job.runner_id === null ? undefined : this.#registrations.get(job.runner_id);
    return (
      listed ??
      this.#registrations.dump().registrations.find((registration) => registration.jobId === job.id)
    );
  }

  #groupName(registration: Registration): string {
    const group = this.#settings.groups.find(
      (candidate) =>
        candidate.id === registration.groupId && candidate.scope === registration.scope,
    );
    return group?.name ?? 'Default';
  }
}

const holds = (registration: Registration, job: SimulatedJob): boolean =>
  registration.jobId === job.id && job.status !== 'completed';
