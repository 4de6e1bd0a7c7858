/** State of one runner workflow, and how events change it. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { AdmittedRunner, PodDeletion } from '../../core/activities/index.ts';
import type { RunnerPhase, RunnerResult, RunnerStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { upgradeCancellation, type Cancellation } from '../../core/domain/cancellation.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { MAX_CLOCK_SKEW_MS } from '../../core/domain/podConditions.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { runnerName } from '../../core/domain/runnerName.ts';
import type { CallResult } from '../shared/activityProxies.ts';
import { observePhase } from '../shared/metrics.ts';
import { RunnerDisplay, type DisplayedVerdict } from './display.ts';
import type { AttemptFailure, CarriedRunnerState, CurrentRunner } from './carriedState.ts';
import { backstopMs, latestDeadlineMs } from './jobDeadline.ts';
import { NO_JOBS } from './jobEvents.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/**
 * Maximum number of recorded phases. A static runner may change between idle and busy thousands of
 * times, so the oldest entries are dropped.
 */
const MAX_PHASES = 60;

/**
 * State of a runner workflow. Deadlines and displayed times use the workflow's own clock.
 *
 * In the workflow task in which a local activity has completed (the admission, a short teardown),
 * this clock shows a different time during replay. No decision may depend on it in that task.
 */
export class RunnerState {
  readonly workflowId: string;
  readonly firstRunId: string;
  /** Start of the first run (ms since the epoch). */
  createdAtMs: number;
  runner: CurrentRunner;
  cancel: Cancellation | undefined;
  /** Cancel request that the verdict takes into account, once it is fixed. */
  fixedCancel: { readonly cancel?: Cancellation } | undefined;
  /**
   * Whether a Temporal cancellation was requested. The workflow then ends as Cancelled, unless its
   * verdict was fixed before.
   */
  workflowCancelled = false;
  /**
   * Whether the set has been notified that a runner of this workflow was online (`notifiedOnline`),
   * that its job has started, if the set asked for that (`notifiedBusy`), and that the workflow has
   * ended (`notifiedEnded`).
   */
  notifiedOnline = false;
  notifiedBusy?: true;
  notifiedEnded?: true;
  /** Failure that ended the current attempt, if any. */
  failure: AttemptFailure | undefined;
  /** Progress of the current runner's unregistration, while that runs. */
  heard: UnregistrationProgress | undefined;
  /** Deletion of the current runner's pod and Secret, once it has been requested. */
  deletion: Promise<PodDeletion> | undefined;
  /** Reason why the cluster rejected the last deletion request, until one is accepted. */
  deletionError: string | undefined;
  /** Pending waits for a pod condition, by activity id. */
  readonly podWaits = new Map<string, Promise<CallResult<PodSnapshot>>>();
  unregisterAttempts = 0;
  replacements: RunnerResult['replacements'] = [];
  /** Time that previous attempts have run a plain command (ms). */
  usedJobMs = 0;
  neverStartedInARow = 0;
  shortLivedInARow = 0;
  phases: RunnerStatus['phases'] = [];
  #spec: AdmittedRunner | undefined;
  /** Runner name from the carried state, used until this run is admitted. */
  #carriedName: string | undefined;
  #phase: RunnerPhase = 'Requested';
  readonly #display = new RunnerDisplay();
  #waits: Pick<RunnerStatus, 'waitingFor' | 'waitingUntil'> = {};

  /** @param startedAtMs - start of this run (ms since the epoch) */
  constructor(workflowId: string, firstRunId: string, startedAtMs: number) {
    this.workflowId = workflowId;
    this.firstRunId = firstRunId;
    this.createdAtMs = startedAtMs;
    this.runner = this.#newRunner(1);
  }

  /**
   * Restores the state carried over from the previous run. The permissions and limits of the runner
   * come from {@link admit} only.
   */
  restore({
    runnerName: name,
    attempt,
    runner,
    location: _place,
    ...rest
  }: CarriedRunnerState): void {
    Object.assign(this, rest);
    this.#carriedName = name;
    this.runner = { ...this.#newRunner(attempt), ...runner };
    this.#phase = rest.phases.at(-1)?.phase ?? 'Idle';
  }

  /**
   * Stores the validated spec, which gives the runner its name and limits, and applies the limits
   * to a running job's deadline.
   */
  admit(spec: AdmittedRunner): void {
    this.#spec = spec;
    const { runner } = this;
    if (runner.busySince === undefined) delete runner.jobDeadline;
    else
      runner.jobDeadline = Math.min(
        runner.jobDeadline ?? Number.POSITIVE_INFINITY,
        latestDeadlineMs(this) + backstopMs(this),
      );
  }

  /** @throws ApplicationFailure if the runner is not admitted yet */
  get spec(): AdmittedRunner {
    if (this.#spec === undefined)
      throw ApplicationFailure.nonRetryable('The runner was not admitted yet', 'Defect');
    return this.#spec;
  }

  /**
   * Scope in which the runner is registered.
   *
   * @throws ApplicationFailure for a plain command, which has no registration
   */
  get scope(): Scope {
    if (this.spec.scope === undefined)
      throw ApplicationFailure.nonRetryable('A plain command has no scope', 'Defect');
    return this.spec.scope;
  }

  get phase(): RunnerPhase {
    return this.#phase;
  }

  /** Starts the next attempt, with a new runner name, a new registration and a new pod. */
  replaceRunner(): void {
    this.runner = this.#newRunner(this.runner.identity.attempt + 1);
    this.deletion = undefined;
    this.heard = undefined;
    this.fixedCancel = undefined;
  }

  #newRunner(attempt: number): CurrentRunner {
    const { workflowId, firstRunId } = this;
    return {
      identity: { workflowId, firstRunId, attempt },
      online: false,
      hadJob: false,
      jobs: NO_JOBS,
    };
  }

  /**
   * Name of the current runner at the CI server, which its job events carry. It is known before the
   * registration is confirmed, because a waiting job may start earlier than that.
   */
  get runnerName(): string {
    if (this.#spec === undefined) return this.#carriedName ?? '';
    return runnerName(this.spec.name, this.spec.nameHash, this.runner.identity.attempt);
  }

  /** Name and id that identify the runner in requests to the CI server. */
  get registration(): { readonly name: string; readonly id?: string } {
    return { name: this.runnerName, ...omitUndefined({ id: this.runner.id }) };
  }

  /**
   * Enters a phase and publishes it.
   *
   * @param sinceMs - start of the phase, if it was reported later (ms since the epoch)
   */
  enterPhase(phase: RunnerPhase, verdict: DisplayedVerdict = {}, sinceMs = Date.now()): void {
    if (phase === this.#phase) return;
    this.recordPhase(phase, sinceMs);
    this.#display.updateSearchAttributes(this.spec, phase, this.runnerName, verdict);
    this.setWaitReason(undefined);
  }

  /**
   * Records a phase without publishing it. Used for phases that have ended when they become known,
   * or soon after, and are not worth a history event.
   */
  recordPhase(phase: RunnerPhase, sinceMs = Date.now()): void {
    if (phase === this.#phase) return;
    const lastAt = Date.parse(this.phases.at(-1)?.at ?? isoTime(this.createdAtMs));
    const at = Math.max(lastAt, sinceMs);
    observePhase(this.#phase, at - lastAt);
    this.#phase = phase;
    this.phases.push({ phase, at: isoTime(at) });
    if (this.phases.length > MAX_PHASES) this.phases.splice(1, 1);
  }

  /** Publishes the current phase in search attributes, if it has only been recorded until now. */
  publishPhase(): void {
    if (this.#phase !== this.#display.publishedPhase)
      this.#display.updateSearchAttributes(this.spec, this.#phase, this.runnerName);
  }

  /** Sets what the workflow waits for, and the deadline of that wait (ms since the epoch). */
  setWaitReason(waitingFor: string | undefined, untilMs?: number): void {
    this.#waits = omitUndefined({
      waitingFor,
      waitingUntil: untilMs === undefined ? undefined : isoTime(untilMs),
    });
    this.#display.updateDetails(this.spec, this.status());
  }

  /**
   * Counts consecutive runners, including the current one, that never started or that were
   * short-lived.
   */
  countLostAttempt({ shortLived }: { readonly shortLived: boolean }): void {
    this.neverStartedInARow =
      this.runner.pod?.startedAt === undefined ? this.neverStartedInARow + 1 : 0;
    this.shortLivedInARow = shortLived ? this.shortLivedInARow + 1 : 1;
  }

  /**
   * Handles a cancel request. A request that arrives after the end of the runner does not change
   * the verdict; it only prevents a replacement.
   */
  requestCancel(wanted: Cancellation): void {
    if (this.hasEnded) this.fixVerdictCancel();
    this.cancel = upgradeCancellation(this.cancel, wanted);
    if (this.#spec !== undefined) this.#display.updateDetails(this.#spec, this.status());
  }

  /**
   * Fixes the cancel request that the verdict uses. Called when the runner has ended or is
   * unregistered.
   */
  fixVerdictCancel(): void {
    this.fixedCancel ??= omitUndefined({ cancel: this.cancel });
  }

  /** Whether the pod is to be killed at once. */
  get isForced(): boolean {
    return this.cancel?.mode === 'force';
  }

  /** Cancel request that the verdict on the current runner uses. */
  get verdictCancel(): Cancellation | undefined {
    return this.fixedCancel === undefined ? this.cancel : this.fixedCancel.cancel;
  }

  /**
   * Whether a job event reports a running job while the pod reports none. An ephemeral runner's
   * event is final, because it has no other job. A static runner counts as busy until its pod has
   * been read live after the event.
   */
  get isIdleInDoubt(): boolean {
    const { podBusy, jobs, idleInDoubtUntilMs } = this.runner;
    const isFinal = this.#spec?.ephemeral === true;
    return (
      podBusy === false &&
      jobs.running !== undefined &&
      (isFinal || idleInDoubtUntilMs !== undefined)
    );
  }

  /**
   * Minimum time since the start of the container (ms), 0 if it has not started. The node's clock
   * may differ from the workflow's, so it counts only as far as the difference can explain.
   */
  get sinceStartedMs(): number {
    const { pod, startSeenMs } = this.runner;
    if (pod?.startedAt === undefined) return 0;
    const startedMs = Date.parse(pod.startedAt) + MAX_CLOCK_SKEW_MS;
    return Math.max(0, Date.now() - Math.min(startSeenMs ?? Number.POSITIVE_INFINITY, startedMs));
  }

  /** Whether the current runner is known to have ended. */
  get hasEnded(): boolean {
    const { ended, pod } = this.runner;
    return ended !== undefined || pod?.ended === true;
  }

  /**
   * Whether a job ran or is running. A pod that first counted as busy and then reports idle revokes
   * this, and so does the runner's own exit record.
   */
  get hadJob(): boolean {
    const { hadJob, podBusy, pod } = this.runner;
    return pod?.exit?.record?.job !== 'none' && (hadJob || podBusy === true);
  }

  /**
   * Returns the activity that the runner itself reports, from its exit record, its pod or job
   * events. Lists of the CI server are never used.
   */
  observedActivity(): 'idle' | 'busy' | 'unknown' {
    const { podBusy, jobs, pod } = this.runner;
    const recorded = pod?.exit?.record?.job;
    if (recorded !== undefined)
      return recorded === 'running' || recorded === 'interrupted' ? 'busy' : 'idle';
    if (podBusy !== undefined) return podBusy || this.isIdleInDoubt ? 'busy' : 'idle';
    // A plain command is its own job from its start, even if a cancel arrived before the command
    // was reported as up.
    if (
      this.#spec?.scope === undefined &&
      pod?.startedAt !== undefined &&
      this.failure === undefined
    )
      return 'busy';
    if (jobs.running !== undefined) return 'busy';
    // A pod that reports its state has reported no job.
    return pod?.busy === false || pod?.assumedBusyFrom !== undefined ? 'idle' : 'unknown';
  }

  /** Returns the state to carry over with continue-as-new. */
  toCarriedState(): CarriedRunnerState {
    const {
      runnerName: name,
      createdAtMs,
      phases,
      replacements,
      unregisterAttempts,
      usedJobMs,
      neverStartedInARow,
      shortLivedInARow,
      cancel,
      notifiedOnline,
      notifiedBusy,
      failure,
      heard,
    } = this;
    const { identity, ...runner } = this.runner;
    return {
      runnerName: name,
      location: this.spec.location,
      createdAtMs,
      attempt: identity.attempt,
      runner,
      phases,
      replacements,
      unregisterAttempts,
      usedJobMs,
      neverStartedInARow,
      shortLivedInARow,
      notifiedOnline,
      ...omitUndefined({ cancel, notifiedBusy, failure, heard }),
    };
  }

  /** Returns the status for the status query and the details. */
  status(): RunnerStatus {
    const { runner, cancel, phases, replacements, unregisterAttempts } = this;
    const { id: runnerId, job, pod } = runner;
    return {
      phase: this.#phase,
      runnerName: this.runnerName,
      attempt: runner.identity.attempt,
      unregisterAttempts,
      phases,
      replacements,
      ...omitUndefined({
        runnerId,
        pod: pod?.name,
        podUid: pod?.uid,
        node: pod?.node,
        job,
        cancel: cancel && { mode: cancel.mode, reason: cancel.reason },
      }),
      ...this.#waits,
    };
  }
}
