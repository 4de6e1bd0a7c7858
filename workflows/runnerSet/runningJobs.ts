import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { JobRecord } from './jobRecord.ts';

/** The jobs that are assigned to runners, found by their runner: no piece of news may cost a walk over all of them. */
export class RunningJobs {
  readonly #set: string;
  readonly #jobs = new Map<string, JobRecord>();
  /** Those of this set's runners, by workflow id: a life may have had several names. */
  readonly #byRunner = new Map<string, Map<string, JobRecord>>();
  /** Those of which nobody has said who runs them. */
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
   * @param workflowId - workflow of that runner, if it is known: finding it costs time
   */
  has(runnerName: string, workflowId = runnerWorkflowIdFromName(this.#set, runnerName)): boolean {
    for (const job of this.#byRunner.get(workflowId ?? '')?.values() ?? [])
      if (job.runnerName === runnerName) return true;
    return false;
  }

  /** Those that ask for a place of this set: not those on somebody else's runners. @param leaves - tells runners that have no place any more */
  count(leaves: (workflowId: string) => boolean): number {
    let asking = this.#unnamed;
    for (const [workflowId, theirs] of this.#byRunner)
      if (!leaves(workflowId)) asking += theirs.size;
    return asking;
  }

  /** Those that {@link count} counts. */
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
