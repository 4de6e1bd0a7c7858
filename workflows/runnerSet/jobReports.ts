/** Reports of the CI server about the jobs of a set: job events, scale set reports, queue checks. */
import type { JobEvent, QueueCheckResult, ScaleSetReport } from '../../core/contract/index.ts';
import { scopeHolds } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import { recordReady } from './breaker.ts';
import type { SetStateData } from './carriedState.ts';
import type { Guards } from './guards.ts';
import type { SetJobs } from './jobs.ts';
import type { Rerouting } from './rerouting.ts';
import type { SetRunner } from './runnerRecord.ts';
import type { SetRunners } from './runners.ts';
import { applyNumbers, limitTimes } from './scaleSetDemand.ts';

/** Parts of a set that reports about its jobs change. */
interface ReportedParts {
  readonly facts: SetStateData;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;
  readonly guards: Guards;
  readonly passing: Rerouting;
}

/** Records that a runner has taken a job, which shows that runners of its template work. */
export function recordJobTaken(
  facts: SetStateData,
  { templateHash }: SetRunner,
  now: number,
): void {
  if (templateHash === facts.spec.templateHash) facts.health = recordReady(facts.health, now);
}

/**
 * Applies what the CI server reports about the jobs of a set. The cost of each report is
 * independent of the number of runners and jobs.
 */
export class JobReports {
  readonly #facts: SetStateData;
  readonly #jobs: SetJobs;
  readonly #runners: SetRunners;
  readonly #guards: Guards;
  readonly #passing: Rerouting;

  /** @param parts - parts of the set, which this changes */
  constructor({ facts, jobs, runners, guards, passing }: ReportedParts) {
    this.#facts = facts;
    this.#jobs = jobs;
    this.#runners = runners;
    this.#guards = guards;
    this.#passing = passing;
  }

  /**
   * Applies job events. Events about jobs that may have completed and been forgotten are skipped.
   */
  onJobEvents(events: readonly JobEvent[], now: number): void {
    for (const event of events) {
      if (this.#jobs.isOlderThanHistory(event)) continue;
      // Use the event's own time, which stays the same when its delivery is sent again.
      const at = Math.min(event.at, now);
      this.#facts.lastJobEventAt = Math.max(this.#facts.lastJobEventAt ?? 0, at);
      this.#jobEvent(event, now);
    }
  }

  /**
   * Applies a job event from the webhook, from another set or from a queue check. An event found by
   * a check may be older than the end of the job's runner.
   */
  #jobEvent(event: JobEvent, now: number): void {
    const facts = this.#facts;
    // A runner of another organization may have the same name as a runner of this set.
    if (facts.spec.scope !== undefined && !scopeHolds(facts.spec.scope, event.repository)) return;
    const before = this.#jobs.get(event);
    const job = this.#jobs.applyEvent(event, now);
    this.#passing.heard(event, before, job);
    const name = event.runnerName;
    const workflowId =
      name === undefined ? undefined : runnerWorkflowIdFromName(facts.spec.name, name);
    if (name === undefined || workflowId === undefined) return;
    const runner = this.#runners.get(workflowId);
    if (runner === undefined) {
      // The runner has ended: the end of its job is confirmed, so its guard is removed, and its job
      // has completed. Before the first list this is unknown.
      this.#guards.remove(workflowId);
      if (facts.listedAt !== undefined && job?.state === 'assigned')
        this.#jobs.runnerEnded(workflowId, now);
      return;
    }
    Object.assign(runner, { runnerName: name, jobReported: true });
    if (job?.state === 'assigned' && before?.state !== 'assigned')
      recordJobTaken(facts, runner, now);
    if (runner.state === 'draining') return;
    if (job?.state === 'assigned' || runner.ephemeral || this.#jobs.runningOn(name))
      this.#runners.setState(runner, 'busy', now);
    else if (event.action === 'completed' && runner.state === 'busy')
      this.#runners.setState(runner, 'idle', now);
  }

  /**
   * Applies a report about the scale set. The runners of started and completed jobs are those that
   * GitHub names, whatever job they were started for.
   */
  onScaleSetReport(received: ScaleSetReport, now: number): void {
    const facts = this.#facts;
    const { scaleSet, relistMs } = facts.spec;
    const report = limitTimes(received, now + relistMs);
    if (scaleSet === undefined || report === undefined) return;
    facts.scaleSet = applyNumbers(facts.scaleSet, report, relistMs);
    for (const name of report.started) this.#onScaleSetJob(name, 'started', now);
    for (const name of report.completed) this.#onScaleSetJob(name, 'completed', now);
  }

  #onScaleSetJob(runnerName: string, event: 'started' | 'completed', now: number): void {
    const facts = this.#facts;
    const jobs = this.#jobs;
    const workflowId = runnerWorkflowIdFromName(facts.spec.name, runnerName);
    if (workflowId === undefined || facts.scaleSet === undefined) return;
    const runner = this.#runners.get(workflowId);
    if (runner === undefined) {
      if (event === 'completed' && this.#guards.remove(workflowId)) jobs.completedTotal++;
      return;
    }
    if (!runner.jobReported) {
      jobs.startedTotal++;
      recordJobTaken(facts, runner, now);
    }
    Object.assign(runner, { runnerName, jobReported: true });
    const { done } = facts.scaleSet;
    if (event === 'completed' && !done.includes(workflowId)) {
      jobs.completedTotal++;
      facts.scaleSet = { ...facts.scaleSet, done: [...done, workflowId] };
    }
    if (runner.state !== 'draining') this.#runners.setState(runner, 'busy', now);
  }

  /** Returns whether the scale set has reported the end of the runner's job, and forgets it. */
  takeDone(workflowId: string): boolean {
    const { scaleSet } = this.#facts;
    if (scaleSet?.done.includes(workflowId) !== true) return false;
    const done = scaleSet.done.filter((id) => id !== workflowId);
    this.#facts.scaleSet = { ...scaleSet, done };
    return true;
  }

  onQueueCheckStarted(now: number): void {
    this.#facts.queueCheckStartedAt = now;
  }

  /**
   * Applies the result of a queue check. A complete check also removes the guards that are older
   * than the check.
   */
  onQueueChecked(look: QueueCheckResult, now: number): void {
    const facts = this.#facts;
    const checkedAt = Math.min(look.checkedAt, now);
    this.#jobs.applyQueueCheck(look, checkedAt, now, (event) => this.#jobEvent(event, now));
    if (look.endedSets.length > 0) this.#jobs.reclaim(new Set(look.endedSets), now);
    if (look.complete) this.#guards.expire((endedAt) => endedAt <= checkedAt);
    facts.checkedAt = Math.max(facts.checkedAt ?? 0, checkedAt);
    delete facts.queueCheckFailure;
    if (look.continues === true) return;
    const { budgetUntil, unsupported } = look;
    const since = facts.incomplete?.since ?? checkedAt;
    if (look.complete) delete facts.incomplete;
    else facts.incomplete = { since, ...omitUndefined({ budgetUntil, unsupported }) };
  }

  onQueueCheckFailed(reason: string, now: number): void {
    this.#facts.queueCheckFailure = reason;
    this.#facts.incomplete = { since: this.#facts.incomplete?.since ?? now };
  }
}
