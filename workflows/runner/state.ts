/** The state of one runner's life, and what news does to it. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { AdmittedRunner, PodDeletion } from '../../core/activities/index.ts';
import type {
  RunnerJobEvent,
  PodStateEvent,
  RunnerPhase,
  RunnerResult,
  RunnerStatus,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { upgradeCancellation, type Cancellation } from '../../core/domain/cancellation.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { stateAgeMs } from '../../core/domain/podConditions.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { runnerName } from '../../core/domain/runnerName.ts';
import type { CallResult } from '../shared/activityProxies.ts';
import { observePhase } from '../shared/metrics.ts';
import { RunnerDisplay, type DisplayedVerdict } from './display.ts';
import type { AttemptFailure, CarriedRunnerState, CurrentRunner } from './carriedState.ts';
import { NO_JOBS, trackJobEvent, concernsRunner } from './jobEvents.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/** After the supervisor should have ended a command that ran into its timeout. */
const BACKSTOP_MS = 60_000;
/** A job that began so much later than the runner turned busy is not the one that made it so: clocks, and probes, are some seconds apart. */
const ANOTHER_JOB_MS = 60_000;

/**
 * Time that a static runner's pod is given to show a job that an event told of, and this life to hear of it (ms): what it said before may be
 * late.
 */
const IDLE_IN_DOUBT_MS = 60_000;

/** A static runner may change between idle and busy thousands of times: the oldest entries go. */
const MAX_PHASES = 60;

/**
 * Its clock is the workflow's own, for deadlines and for show. In the workflow task in which a local activity has ended (the admission, a
 * short tear-down) that one says another time in a replay: nothing may be decided by it then.
 */
export class RunnerState {
  readonly workflowId: string;
  readonly firstRunId: string;
  /** When its first run began (ms since the epoch). */
  createdAtMs: number;
  runner: CurrentRunner;
  cancel: Cancellation | undefined;
  /** What the verdict goes by of what was asked for, once that is fixed. */
  fixedCancel: { readonly cancel?: Cancellation } | undefined;
  /** Plain cancellation was requested: the workflow ends Cancelled, unless its verdict was fixed before. */
  workflowCancelled = false;
  /** Its set knows that a runner of this life was online; that its job has started, where it asks for that; and that this life has ended. */
  notifiedOnline = false;
  notifiedBusy?: true;
  notifiedEnded?: true;
  /** Of the present attempt. */
  failure: AttemptFailure | undefined;
  /** What the present runner's unregistration has heard, while it goes on. */
  heard: UnregistrationProgress | undefined;
  /** The present runner's pod and Secret were asked to be deleted. */
  deletion: Promise<PodDeletion> | undefined;
  /** Why the cluster refused that last, for as long as it does. */
  deletionError: string | undefined;
  /** Waits for a condition of a pod that have no answer yet, by activity id. */
  readonly podWaits = new Map<string, Promise<CallResult<PodSnapshot>>>();
  unregisterAttempts = 0;
  replacements: RunnerResult['replacements'] = [];
  /** How long the attempts before the present one ran a plain command (ms). */
  usedJobMs = 0;
  neverStartedInARow = 0;
  shortLivedInARow = 0;
  phases: RunnerStatus['phases'] = [];
  #spec: AdmittedRunner | undefined;
  /** Its name, while this run is not admitted yet. */
  #carriedName: string | undefined;
  #phase: RunnerPhase = 'Requested';
  readonly #display = new RunnerDisplay();
  #waits: Pick<RunnerStatus, 'waitingFor' | 'waitingUntil'> = {};

  /** @param startedAtMs - when this run began (ms since the epoch) */
  constructor(workflowId: string, firstRunId: string, startedAtMs: number) {
    this.workflowId = workflowId;
    this.firstRunId = firstRunId;
    this.createdAtMs = startedAtMs;
    this.runner = this.#newRunner(1);
  }

  /** Takes in what the run before has handed on. What the runner may be, and for how long, is for {@link admit}. */
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

  /** Its input was checked: from now on it has a name, and limits. */
  admit(spec: AdmittedRunner): void {
    this.#spec = spec;
    const { runner } = this;
    if (runner.busySince === undefined) delete runner.jobDeadline;
    else
      runner.jobDeadline = Math.min(
        runner.jobDeadline ?? Number.POSITIVE_INFINITY,
        this.latestDeadlineMs + this.#backstopMs,
      );
  }

  /** @throws ApplicationFailure before it is admitted */
  get spec(): AdmittedRunner {
    if (this.#spec === undefined)
      throw ApplicationFailure.nonRetryable('The runner was not admitted yet', 'Defect');
    return this.#spec;
  }

  /** Where it is registered. @throws ApplicationFailure for a plain command, which is registered nowhere */
  get scope(): Scope {
    if (this.spec.scope === undefined)
      throw ApplicationFailure.nonRetryable('A plain command has no scope', 'Defect');
    return this.spec.scope;
  }

  get phase(): RunnerPhase {
    return this.#phase;
  }

  /** The next runner of this life: a new name, a new registration, a new pod. */
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
   * The present runner's name at the CI server, under which its job events are known: also before it is known to be registered, because a
   * job that waited for it may start before that.
   */
  get runnerName(): string {
    if (this.#spec === undefined) return this.#carriedName ?? '';
    return runnerName(this.spec.name, this.spec.nameHash, this.runner.identity.attempt);
  }

  /** What the CI server is asked for. */
  get registration(): { readonly name: string; readonly id?: string } {
    return { name: this.runnerName, ...omitUndefined({ id: this.runner.id }) };
  }

  /** Moves to a phase, and shows it. @param sinceMs - when it began, if that was told later (ms since the epoch) */
  enterPhase(phase: RunnerPhase, verdict: DisplayedVerdict = {}, sinceMs = Date.now()): void {
    if (phase === this.#phase) return;
    this.recordPhase(phase, sinceMs);
    this.#display.updateSearchAttributes(this.spec, phase, this.runnerName, verdict);
    this.setWaitReason(undefined);
  }

  /** Notes a phase that is over by the time it is known, or soon after: in the record, not worth an event. */
  recordPhase(phase: RunnerPhase, sinceMs = Date.now()): void {
    if (phase === this.#phase) return;
    const lastAt = Date.parse(this.phases.at(-1)?.at ?? new Date(this.createdAtMs).toISOString());
    const at = Math.max(lastAt, sinceMs);
    observePhase(this.#phase, at - lastAt);
    this.#phase = phase;
    this.phases.push({ phase, at: new Date(at).toISOString() });
    if (this.phases.length > MAX_PHASES) this.phases.splice(1, 1);
  }

  /** Shows the present phase in lists, where it was only passed until now. */
  publishPhase(): void {
    if (this.#phase !== this.#display.publishedPhase)
      this.#display.updateSearchAttributes(this.spec, this.#phase, this.runnerName);
  }

  /** Says what the life waits for, and until when (ms since the epoch). */
  setWaitReason(waitingFor: string | undefined, untilMs?: number): void {
    this.#waits = omitUndefined({
      waitingFor,
      waitingUntil: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
    });
    this.#display.updateDetails(this.spec, this.status());
  }

  /** Counts how many runners in a row went the same bad way, the present one included. */
  countLostAttempt(shortLived: boolean): void {
    this.neverStartedInARow =
      this.runner.pod?.startedAt === undefined ? this.neverStartedInARow + 1 : 0;
    this.shortLivedInARow = shortLived ? this.shortLivedInARow + 1 : 1;
  }

  /** One that comes after the runner's end changes no verdict: it only keeps another runner from taking its place. */
  requestCancel(wanted: Cancellation): void {
    if (this.hasEnded) this.fixVerdictCancel();
    this.cancel = upgradeCancellation(this.cancel, wanted);
    if (this.#spec !== undefined) this.#display.updateDetails(this.#spec, this.status());
  }

  /** Fixes what the verdict goes by of what was asked for: the runner has ended, or is unregistered. */
  fixVerdictCancel(): void {
    this.fixedCancel ??= omitUndefined({ cancel: this.cancel });
  }

  /** What the verdict on the present runner goes by. */
  get verdictCancel(): Cancellation | undefined {
    return this.fixedCancel === undefined ? this.cancel : this.fixedCancel.cancel;
  }

  /** A job event from the CI server: an early hint. Events about other runners, and those that say nothing new, change nothing. */
  onJobEvent(event: RunnerJobEvent): void {
    const { runner, spec } = this;
    if (!concernsRunner(event, this.runnerName, runner.id, spec.scope)) return;
    const tracked = trackJobEvent(runner.jobs, event);
    if (tracked === runner.jobs) return;
    // A job that its runner's end took with it is told to be over, too, once the CI server has noticed.
    const jobs =
      this.hasEnded && event.action === 'completed' && event.conclusion !== 'success'
        ? { ...tracked, ...omitUndefined({ running: runner.jobs.running }) }
        : tracked;
    if (jobs.running === undefined) delete runner.idleInDoubtUntilMs;
    else if (jobs.running.key !== runner.jobs.running?.key && !spec.ephemeral)
      runner.idleInDoubtUntilMs = Date.now() + IDLE_IN_DOUBT_MS;
    // An event that overtook its own in_progress, or that comes late, still proves that a job ran.
    Object.assign(runner, { jobs, online: true, hadJob: true });
    delete runner.unconfirmedBusyMs;
    if (
      event.action === 'completed' &&
      event.conclusion !== undefined &&
      event.conclusion !== 'success'
    )
      runner.jobFailedAt = Date.now();
    // A pod that tells is not made busy by an event, which may be late: it has only one job that an event can be about if it takes but one.
    if (jobs.running !== undefined && (runner.podBusy === undefined || spec.ephemeral))
      this.#setBusy();
    else if (jobs.running === undefined && runner.podBusy !== true) this.#setIdle();
    this.#assignJob(event.at);
  }

  /** The pod's own word on idle and busy. One that comes after the runner's end is late, and changes nothing. */
  onPodState({ uid, state, newJob, durationMs }: PodStateEvent): void {
    const { runner } = this;
    if (runner.pod === undefined || uid !== runner.pod.uid || this.hasEnded) return;
    if (newJob === true) this.applyPodState(false);
    this.applyPodState(state === 'busy', stateAgeMs(durationMs));
  }

  /** What the runner's pod says, however it was heard, and for how long that has been so (ms). */
  applyPodState(busy: boolean, forMs = 0): void {
    this.runner.podBusy = busy;
    if (busy) this.#setBusy(forMs);
    else this.#setIdle();
    this.#assignJob();
  }

  /** Its pod was looked at live. @param askedAtMs - when the look began (ms since the epoch) */
  confirmIdle(askedAtMs: number): void {
    const { runner } = this;
    if (runner.podBusy === false && askedAtMs >= (runner.idleInDoubtUntilMs ?? 0))
      delete runner.idleInDoubtUntilMs;
  }

  /**
   * Whether a job event says that a job runs, and the pod that none does. An ephemeral runner's event is final: it has no other job. A
   * static one's pod is believed once it was looked at later than the event; until then it is busy.
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

  /** The CI server calls a runner busy that lives: it came online and took a job, whose time begins now if nothing told of it before. */
  calledBusy(): void {
    this.runner.hadJob = true;
    this.#setBusy();
  }

  /** A plain command is its own job. */
  commandStarted(): void {
    this.applyPodState(true);
  }

  #setBusy(forMs = 0): void {
    this.runner.online = true;
    if (this.runner.busySince === undefined) this.#startJob(forMs);
  }

  #startJob(forMs = 0): void {
    const { runner, spec } = this;
    runner.busySince = Date.now() - forMs;
    runner.jobDeadline = Math.min(
      runner.busySince +
        Math.min(spec.timeouts.jobTimeoutMs, this.remainingJobMs) +
        this.#backstopMs,
      this.maxDurationDeadlineMs,
    );
    delete runner.busyJobKey;
  }

  /** Under the supervisor a plain command's timeout is kept in the pod, and the workflow's, so much later, is the backstop (ms). */
  get #backstopMs(): number {
    const { runner, spec } = this;
    return spec.scope === undefined && runner.pod?.online !== undefined
      ? spec.pod.terminationGracePeriodSeconds * 1_000 +
          (spec.pod.storage?.timeoutMs ?? 0) +
          BACKSTOP_MS
      : 0;
  }

  /** When a life that resumes has had its time, however often it lost its pod (ms since the epoch); no other has such a time. */
  get maxDurationDeadlineMs(): number {
    return this.spec.onEviction === 'resume'
      ? this.createdAtMs + this.spec.timeouts.maxAgeMs
      : Number.POSITIVE_INFINITY;
  }

  /** How long a job of the present runner may take at the most (ms). A plain command is the same job in each attempt: the cap is for all together. */
  get remainingJobMs(): number {
    return Math.max(0, this.spec.pod.jobTimeoutCapMs - this.usedJobMs);
  }

  /** Counts the time of an attempt that is over. */
  countJobTime(): void {
    const { busySince } = this.runner;
    if (this.spec.scope === undefined && busySince !== undefined)
      this.usedJobMs += Date.now() - busySince;
  }

  /** How late the job's deadline may be moved (ms since the epoch). */
  get latestDeadlineMs(): number {
    return Math.min(
      (this.runner.busySince ?? Number.NaN) + this.remainingJobMs,
      this.maxDurationDeadlineMs,
    );
  }

  /** Of a job that ran into its deadline, or of a life that is too old. */
  timeoutReason(): string {
    if (Date.now() >= this.maxDurationDeadlineMs)
      return `it is ${formatDuration(this.spec.timeouts.maxAgeMs)} old (timeouts.maxAge), in attempt ${this.runner.identity.attempt}`;
    const { busySince } = this.runner;
    return busySince === undefined
      ? `the CI server called it busy for ${formatDuration(this.spec.timeouts.jobTimeoutMs)}`
      : `its job ran for ${formatDuration(Date.now() - busySince)}`;
  }

  /**
   * Whose job is it? One must not be stopped at the deadline of the one before it, between which and itself nobody saw the runner idle.
   * @param toldMs - of the event that tells, by the CI server's clock (ms since the epoch)
   */
  #assignJob(toldMs = 0): void {
    const { runner, spec } = this;
    const { running } = runner.jobs;
    if (runner.busySince === undefined) return;
    const isAnother =
      runner.busyJobKey === undefined
        ? toldMs - runner.busySince > ANOTHER_JOB_MS
        : runner.busyJobKey !== running?.key;
    if (isAnother && !spec.ephemeral) this.#startJob();
    if (running !== undefined)
      Object.assign(runner, { busyJobKey: running.key, job: running.label });
  }

  #setIdle(): void {
    const { runner, spec } = this;
    // An ephemeral runner does not come back from its job: until it ends, its job's deadline stands. One that never had any was taken for busy.
    if (spec.ephemeral && runner.hadJob) return;
    if (runner.busySince !== undefined && runner.busyJobKey === undefined)
      runner.unconfirmedBusyMs = (runner.unconfirmedBusyMs ?? 0) + Date.now() - runner.busySince;
    delete runner.busySince;
    delete runner.busyJobKey;
    delete runner.jobDeadline;
    delete runner.job;
  }

  /**
   * It has been busy for as long as one job may be, by its pod's word alone: what a job has left behind can say so, on and off, for ever. Another
   * runner takes its place when it is idle, at no cost for a job.
   */
  get isSuspect(): boolean {
    const { ephemeral, pod } = this.spec;
    return !ephemeral && (this.runner.unconfirmedBusyMs ?? 0) >= pod.jobTimeoutCapMs;
  }

  /** Whether the present runner is known to have ended. */
  get hasEnded(): boolean {
    const { ended, pod } = this.runner;
    return ended !== undefined || pod?.ended === true;
  }

  /** A job ran, or runs. A pod that was taken for busy, and then tells that it is not, takes it back; so does the runner's own record. */
  get hadJob(): boolean {
    const { hadJob, podBusy, pod } = this.runner;
    return pod?.exit?.record?.job !== 'none' && (hadJob || podBusy === true);
  }

  /** What the runner itself says, by its record, its pod or job events; never what the CI server's lists say. */
  observedActivity(): 'idle' | 'busy' | 'unknown' {
    const { podBusy, jobs, pod } = this.runner;
    const recorded = pod?.exit?.record?.job;
    if (recorded !== undefined)
      return recorded === 'running' || recorded === 'interrupted' ? 'busy' : 'idle';
    if (podBusy !== undefined) return podBusy || this.isIdleInDoubt ? 'busy' : 'idle';
    // A plain command is its own job from its start, also where a cancel came before anybody had told that it is up.
    if (
      this.#spec?.scope === undefined &&
      pod?.startedAt !== undefined &&
      this.failure === undefined
    )
      return 'busy';
    if (jobs.running !== undefined) return 'busy';
    // A pod that tells has told of no job.
    return pod?.busy === false || pod?.assumedBusyFrom !== undefined ? 'idle' : 'unknown';
  }

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
