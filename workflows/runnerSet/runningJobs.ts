import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { JobRecord } from './jobRecord.ts';

/**
 * Jobs that are assigned to runners, indexed by runner, so that an event never requires an
 * iteration over all of them.
 */
export class RunningJobs {
  readonly #set: string;
  readonly #jobs = new Map<string, JobRecord>();
  /**
   * Jobs of this set's runners, by workflow id. A runner workflow may have had several runner
   * names.
   */
  readonly #byRunner = new Map<string, Map<string, JobRecord>>();
  /** Number of jobs whose runner is unknown. */
  #unnamed = 0;

  constructor(set: string) {
    this.#set = set;
  }

  set(key: string, job: JobRecord): void {
    this.delete(key);
    this.#jobs.set(key, job);
    if (job.runnerName === undefined) this.#unnamed++;
    const workflowId = this.#runnerOf(job);
    if (workflowId === undefined) return;
    const theirs = this.#byRunner.get(workflowId) ?? new Map<string, JobRecord>();
    this.#byRunner.set(workflowId, theirs);
    theirs.set(key, job);
  }

  delete(key: string): void {
    const job = this.#jobs.get(key);
    if (job === undefined) return;
    this.#jobs.delete(key);
    if (job.runnerName === undefined) this.#unnamed--;
    const workflowId = this.#runnerOf(job) ?? '';
    const theirs = this.#byRunner.get(workflowId);
    theirs?.delete(key);
    if (theirs?.size === 0) this.#byRunner.delete(workflowId);
  }

  all(): [string, JobRecord][] {
    return [...this.#jobs];
  }

  keysOf(workflowId: string): string[] {
    return [...(this.#byRunner.get(workflowId)?.keys() ?? [])];
  }

  /**
   * Returns whether a job is assigned to the runner of this name at the CI server.
   * @param workflowId - workflow of that runner, if it is known, because finding it is slow
   */
  has(runnerName: string, workflowId = runnerWorkflowIdFromName(this.#set, runnerName)): boolean {
    for (const job of this.#byRunner.get(workflowId ?? '')?.values() ?? [])
      if (job.runnerName === runnerName) return true;
    return false;
  }

  /**
   * Returns the number of jobs that require a runner of this set. Jobs on other runners are not
   * counted.
   *
   * @param leaves - whether a runner is draining; its jobs are not counted
   */
  count(leaves: (workflowId: string) => boolean): number {
    let asking = this.#unnamed;
    for (const [workflowId, theirs] of this.#byRunner)
      if (!leaves(workflowId)) asking += theirs.size;
    return asking;
  }

  /** Iterates over the jobs that {@link count} counts. */
  *countWaiting(leaves: (workflowId: string) => boolean): Iterable<JobRecord> {
    for (const job of this.#jobs.values()) {
      const workflowId = this.#runnerOf(job);
      if (workflowId === undefined ? job.runnerName === undefined : !leaves(workflowId)) yield job;
    }
  }

  #runnerOf({ runnerName }: JobRecord): string | undefined {
    return runnerName === undefined ? undefined : runnerWorkflowIdFromName(this.#set, runnerName);
  }
}
