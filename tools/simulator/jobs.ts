import type { JobSpec, SimulatedJob } from './types.ts';

/** All jobs, in the order in which they were queued. */
export class Jobs {
  #jobs = new Map<number, SimulatedJob>();
  /** Ids of jobs that wait for a runner, oldest first. */
  #queued = new Set<number>();
  #nextId = 1001;
  #nextRunId = 5001;

  queue(spec: JobSpec): SimulatedJob {
    if (!/^[^/\s]+\/[^/\s]+$/.test(spec.repo))
      throw new Error(`job needs repo "owner/repo", got ${JSON.stringify(spec.repo)}`);
    const job: SimulatedJob = {
      id: this.#nextId++,
      run_id: spec.run_id ?? this.#nextRunId++,
      run_attempt: spec.run_attempt ?? 1,
      name: spec.name ?? 'build',
      workflow_name: spec.workflow_name ?? 'CI',
      repo: spec.repo,
      labels: spec.labels ?? ['self-hosted'],
      command:
        spec.command ?? (spec.sleepMs === undefined ? 'true' : `sleep ${spec.sleepMs / 1000}`),
      ...(spec.sleepMs === undefined ? {} : { sleepMs: spec.sleepMs }),
      ...(spec.result === undefined ? {} : { plannedResult: spec.result }),
      status: 'queued',
      conclusion: null,
      runner_id: null,
      runner_name: null,
      runner_group_id: null,
      runner_group_name: null,
      output: [],
      cancelRequested: false,
      assignments: 0,
      created_at: new Date().toISOString(),
      started_at: null,
      completed_at: null,
    };
    this.#jobs.set(job.id, job);
    this.#queued.add(job.id);
    return job;
  }

  /** Of that run, in all attempts. */
  ofRun(runId: number): SimulatedJob[] {
    return this.all().filter((job) => job.run_id === runId);
  }

  get(id: number): SimulatedJob | undefined {
    return this.#jobs.get(id);
  }

  all(): SimulatedJob[] {
    return [...this.#jobs.values()];
  }

  /** Returns the jobs that wait for a runner, oldest first. */
  *queued(): Generator<SimulatedJob> {
    for (const id of this.#queued) {
      const job = this.#jobs.get(id);
      if (job) yield job;
    }
  }

  /** The oldest waiting job that satisfies the condition. */
  firstQueued(fits: (job: SimulatedJob) => boolean): SimulatedJob | undefined {
    for (const id of this.#queued) {
      const job = this.#jobs.get(id);
      if (job && fits(job)) return job;
    }
    return undefined;
  }

  /** Takes a job out of the queue (assigned, or cancelled). */
  dequeue(job: SimulatedJob): void {
    this.#queued.delete(job.id);
  }

  /** A runner did not start it: it is the oldest again. */
  requeue(job: SimulatedJob): void {
    job.status = 'queued';
    job.runner_id = null;
    job.runner_name = null;
    job.runner_group_id = null;
    job.runner_group_name = null;
    this.#queued = new Set([job.id, ...this.#queued].toSorted((a, b) => a - b));
  }

  dump(): { nextId: number; nextRunId: number; jobs: SimulatedJob[] } {
    return { nextId: this.#nextId, nextRunId: this.#nextRunId, jobs: this.all() };
  }

  restore(saved: { nextId: number; nextRunId: number; jobs: SimulatedJob[] }): void {
    this.#nextId = saved.nextId;
    this.#nextRunId = saved.nextRunId;
    for (const job of saved.jobs) {
      this.#jobs.set(job.id, job);
      if (job.status === 'queued') this.#queued.add(job.id);
    }
  }
}
