import { CiServerError } from '../../activities/ports/ciServerError.ts';
import type { JobReruns } from '../../activities/ports/jobReruns.ts';
import type { RerunJob } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import type { EndEvidence, RerunCandidate } from '../../core/domain/rerun.ts';

/** Reruns of a CI server in memory. Each job is in a workflow run of its own. */
export class FakeReruns implements JobReruns {
  readonly jobs = new Map<string, RerunCandidate>();
  /** What the server reports about the end of a job. @default its runner was lost */
  readonly evidence = new Map<string, EndEvidence>();
  /** IDs of the jobs that were rerun, in order. */
  readonly requested: string[] = [];
  /** Thrown by the next requests. */
  readonly failures: Error[] = [];
  /** Thrown by the next reads of a job. */
  readonly readFailures: Error[] = [];
  /** Runs after the next failure that was thrown on request. */
  afterFailure?: (() => void) | undefined;
  /** Thrown by the next requests that the server accepts. */
  readonly lostResponses: Error[] = [];
  /** IDs of the jobs whose runs were force-cancelled, in order. */
  readonly forceCancelled: string[] = [];
  /** Jobs whose run has other jobs that have not ended. */
  readonly shared = new Set<string>();
  /** Runs before the next request, for a rerun or a force-cancel. */
  beforeRequest?: (() => void) | undefined;

  /** A job that a runner runs. */
  begin(id: string, runnerName: string): void {
    const candidate = { runId: `run-${id}`, attempt: 1, latestAttempt: 1, runEnded: false };
    this.jobs.set(id, { ...candidate, runnerName });
  }

  end(id: string, conclusion: string, more: Partial<RerunCandidate> = {}): void {
    const job = this.jobs.get(id);
    if (job === undefined) throw new Error(`no job ${id}`);
    this.jobs.set(id, { ...job, conclusion, completedAt: Date.now(), runEnded: true, ...more });
  }

  async getJob(_scope: Scope, { id }: RerunJob): Promise<RerunCandidate | undefined> {
    this.#failWith(this.readFailures);
    return this.jobs.get(id);
  }

  async endEvidence(_scope: Scope, { id }: RerunJob): Promise<EndEvidence> {
    return this.evidence.get(id) ?? 'lost';
  }

  async isOnlyActiveJob(_scope: Scope, { id }: RerunJob): Promise<boolean> {
    return this.jobs.get(id)?.conclusion === undefined && !this.shared.has(id);
  }

  async forceCancel(_scope: Scope, { id }: RerunJob): Promise<void> {
    this.#begin();
    this.forceCancelled.push(id);
    if (this.jobs.get(id)?.conclusion === undefined) this.end(id, 'cancelled');
    if (this.evidence.get(id) === 'none') this.evidence.set(id, 'cancelled_by_credential');
    const lost = this.lostResponses.shift();
    if (lost !== undefined) throw lost;
  }

  async missingPermissions(): Promise<readonly string[]> {
    return [];
  }

  async rerun(_scope: Scope, { id }: RerunJob): Promise<void> {
    this.#begin();
    this.#failWith(this.failures);
    const job = this.jobs.get(id);
    if (job?.runEnded !== true)
      throw new CiServerError('busy', 'This workflow is already running', { status: 403 });
    this.requested.push(id);
    const attempt = (job.latestAttempt ?? 1) + 1;
    this.jobs.set(id, { ...job, latestAttempt: attempt, rerunAttempt: attempt, runEnded: false });
    const lost = this.lostResponses.shift();
    if (lost !== undefined) throw lost;
  }

  #failWith(failures: Error[]): void {
    const failure = failures.shift();
    if (failure === undefined) return;
    this.afterFailure?.();
    throw failure;
  }

  #begin(): void {
    const { beforeRequest } = this;
    delete this.beforeRequest;
    beforeRequest?.();
  }
}
