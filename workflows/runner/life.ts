/** The state of one runner's life, and how people see it. */
import { ApplicationFailure, setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { upgradeCancellation, type Cancellation } from '../../core/domain/cancellation.ts';
import { SEARCH_ATTRIBUTES, type CiEvent, type PodStateEvent, type RunnerCause, type RunnerPhase, type RunnerResult, type RunnerStatus } from '../../core/contract/index.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import { runnerName } from '../../core/domain/runnerName.ts';
import type { PodView, RunnerIdentity } from '../../core/domain/pod.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

/** What is known of the present runner of a life. */
export interface RunnerState {
  readonly identity: RunnerIdentity;
  id?: number;
  /** The pod as last seen. */
  pod?: PodView;
  /** The pod once it has ended: what everything else waits for. */
  ended?: PodView;
  online: boolean;
  sawJob: boolean;
  /** By the pod's own probes; `undefined` when it does not tell. */
  podBusy?: boolean;
  /** By job events. */
  ciBusy: boolean;
  job?: string;
  /** When its last job was said to have ended otherwise than in success (ms since the epoch). */
  jobFailedAt?: number;
  /** ms since the epoch. */
  busySince?: number;
  /** ms since the epoch; moved by `extendDeadline`. */
  jobDeadline?: number;
}

/** What continue-as-new carries over. */
export interface CarriedLife {
  readonly spec: RunnerSpec;
  readonly runner: RunnerState;
  readonly phases: { phase: RunnerPhase; at: string }[];
  readonly replaced: RunnerResult['replaced'];
  readonly unregisterAttempts: number;
  readonly neverStartedInARow: number;
  readonly shortLivedInARow: number;
  readonly cancel?: Cancellation;
}

/** After the supervisor should have ended a command that ran into its timeout. */
const BACKSTOP_MS = 60_000;

/** A static runner may change between idle and busy thousands of times: the oldest entries go. */
const MAX_PHASES = 60;

export class RunnerLife {
  readonly spec: RunnerSpec;
  readonly workflowId: string;
  readonly firstRunId: string;
  runner: RunnerState;
  cancel: Cancellation | undefined;
  /** Plain cancellation was requested: the workflow ends Cancelled. */
  plainlyCancelled = false;
  /** Its set knows that a runner of this life was online. */
  toldOnline: boolean;
  unregisterAttempts = 0;
  replaced: RunnerResult['replaced'] = [];
  neverStartedInARow = 0;
  shortLivedInARow = 0;
  phases: { phase: RunnerPhase; at: string }[] = [];
  #phase: RunnerPhase = 'Requested';
  #publishedName: string | undefined;
  #publishedPhase: RunnerPhase | undefined;
  #waitsFor: string | undefined;
  #waitsUntil: number | undefined;

  constructor(spec: RunnerSpec, workflowId: string, firstRunId: string, carried: CarriedLife | undefined) {
    this.spec = spec;
    this.workflowId = workflowId;
    this.firstRunId = firstRunId;
    this.runner = carried?.runner ?? this.#newRunner(1);
    // A life continues as new only while it is online.
    this.toldOnline = carried !== undefined;
    if (carried === undefined) return;
    const { phases, replaced, unregisterAttempts, neverStartedInARow, shortLivedInARow, cancel } = carried;
    Object.assign(this, { phases, replaced, unregisterAttempts, neverStartedInARow, shortLivedInARow, cancel });
    this.#phase = phases.at(-1)?.phase ?? 'Idle';
  }

  /** Where it is registered. @throws ApplicationFailure for a plain command, which is registered nowhere */
  get scope(): Scope {
    if (this.spec.scope === undefined) throw ApplicationFailure.nonRetryable('A plain command has no scope', 'Defect');
    return this.spec.scope;
  }

  get phase(): RunnerPhase {
    return this.#phase;
  }

  /** The next runner of this life: a new name, a new registration, a new pod. */
  replaceRunner(): void {
    this.runner = this.#newRunner(this.runner.identity.attempt + 1);
  }

  #newRunner(attempt: number): RunnerState {
    const { workflowId, firstRunId } = this;
    return { identity: { workflowId, firstRunId, attempt }, online: false, sawJob: false, ciBusy: false };
  }

  /**
   * The present runner's name at the CI server, under which its job events are known: also before it is known to be registered, because a
   * job that waited for it may start before that.
   */
  get runnerName(): string {
    return runnerName(this.spec.name, this.spec.nameHash, this.runner.identity.attempt);
  }

  /** What the CI server is asked for. */
  get registration(): { readonly name: string; readonly id?: number } {
    const { id } = this.runner;
    return { name: this.runnerName, ...(id === undefined ? {} : { id }) };
  }

  /** Moves to a phase: the search attribute for lists and filters, the details for the one who looks. */
  enter(phase: RunnerPhase, more: { outcome?: string; cause?: RunnerCause } = {}): void {
    if (phase === this.#phase) return;
    const first = this.phases.length === 0;
    this.pass(phase);
    this.#publish(first, more);
    this.waitFor(undefined);
  }

  /** Shows the present phase in lists, where it was only passed until now. */
  linger(): void {
    if (this.#phase !== this.#publishedPhase) this.#publish(false, {});
  }

  #publish(first: boolean, more: { outcome?: string; cause?: RunnerCause }): void {
    const { spec } = this;
    const name = this.runnerName;
    upsertSearchAttributes([
      { key: SEARCH_ATTRIBUTES.phase, value: this.#phase },
      ...(first && spec.scope !== undefined ? [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }] : []),
      ...(first && spec.set !== undefined ? [{ key: SEARCH_ATTRIBUTES.set, value: spec.set }] : []),
      ...(name !== this.#publishedName ? [{ key: SEARCH_ATTRIBUTES.name, value: name }] : []),
      ...(more.outcome === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.outcome, value: more.outcome }]),
      ...(more.cause === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.cause, value: more.cause }]),
    ]);
    this.#publishedName = name;
    this.#publishedPhase = this.#phase;
  }

  /** Notes a phase that is over by the time it is known, or soon after: in the record, not worth an event. */
  pass(phase: RunnerPhase): void {
    if (phase === this.#phase) return;
    this.#phase = phase;
    this.phases.push({ phase, at: new Date().toISOString() });
    if (this.phases.length > MAX_PHASES) this.phases.splice(1, 1);
  }

  /** Says what the life waits for, and until when (ms since the epoch). */
  waitFor(what: string | undefined, untilMs?: number): void {
    this.#waitsFor = what;
    this.#waitsUntil = untilMs;
    setCurrentDetails(this.#details());
  }

  /** Counts how many runners in a row went the same bad way, the present one included. */
  countLoss(shortLived: boolean): void {
    this.neverStartedInARow = this.runner.pod?.startedAt === undefined ? this.neverStartedInARow + 1 : 0;
    this.shortLivedInARow = shortLived ? this.shortLivedInARow + 1 : 1;
  }

  requestCancel(wanted: Cancellation): void {
    this.cancel = upgradeCancellation(this.cancel, wanted);
    setCurrentDetails(this.#details());
  }

  /** A job event from the CI server: an early hint. Events about other runners, and stale ones, change nothing. */
  onCiEvent(event: CiEvent): void {
    const { runner } = this;
    if (event.runnerName !== undefined && event.runnerName !== this.runnerName) return;
    if (event.action === 'in_progress') {
      runner.ciBusy = true;
      runner.job = `${event.jobName ?? 'job'} (${event.jobId})`;
      this.#becameBusy();
    } else if (event.action === 'completed') {
      runner.ciBusy = false;
      // An event that overtook its own in_progress still proves that a job ran.
      runner.sawJob = true;
      if (event.conclusion !== undefined && event.conclusion !== 'success') runner.jobFailedAt = Date.now();
      if (runner.podBusy !== true) this.#becameIdle();
    }
  }

  /** The pod's own word on idle and busy. */
  onPodState(event: PodStateEvent): void {
    const { runner } = this;
    if (runner.pod !== undefined && event.uid === runner.pod.uid) this.heardPod(event.state === 'busy');
  }

  /** What the runner's pod says, however it was heard. */
  heardPod(busy: boolean): void {
    this.runner.podBusy = busy;
    if (busy) this.#becameBusy();
    else this.#becameIdle();
  }

  /** A plain command is its own job. Under the supervisor its timeout is kept in the pod, and the workflow's is the backstop. */
  commandRuns(): void {
    const { runner, spec } = this;
    const backstopMs = runner.pod?.online === undefined ? 0 : spec.pod.terminationGracePeriodSeconds * 1_000 + BACKSTOP_MS;
    runner.jobDeadline ??= Date.now() + spec.timeouts.jobTimeoutMs + backstopMs;
    this.heardPod(true);
  }

  #becameBusy(): void {
    const { runner } = this;
    Object.assign(runner, { online: true, sawJob: true });
    runner.busySince ??= Date.now();
    runner.jobDeadline ??= runner.busySince + this.spec.timeouts.jobTimeoutMs;
  }

  #becameIdle(): void {
    // An ephemeral runner does not come back from its job: until it ends, its job's deadline stands.
    if (this.spec.ephemeral) return;
    delete this.runner.busySince;
    delete this.runner.jobDeadline;
    delete this.runner.job;
  }

  /** What the runner itself says, by its pod or by job events; never what the CI server's lists say. */
  ownSignal(): 'idle' | 'busy' | 'unknown' {
    const { podBusy, ciBusy } = this.runner;
    if (podBusy !== undefined) return podBusy ? 'busy' : 'idle';
    return ciBusy ? 'busy' : 'unknown';
  }

  carry(): CarriedLife {
    const { spec, runner, phases, replaced, unregisterAttempts, neverStartedInARow, shortLivedInARow, cancel } = this;
    return { spec, runner, phases, replaced, unregisterAttempts, neverStartedInARow, shortLivedInARow, ...(cancel === undefined ? {} : { cancel }) };
  }

  status(): RunnerStatus {
    const { runner, cancel } = this;
    return {
      phase: this.#phase,
      runnerName: this.runnerName,
      attempt: runner.identity.attempt,
      unregisterAttempts: this.unregisterAttempts,
      phases: this.phases,
      replaced: this.replaced,
      ...(runner.id === undefined ? {} : { runnerId: runner.id }),
      ...(runner.pod === undefined ? {} : { pod: runner.pod.name, podUid: runner.pod.uid }),
      ...(runner.pod?.node === undefined ? {} : { node: runner.pod.node }),
      ...(runner.job === undefined ? {} : { job: runner.job }),
      ...(this.#waitsFor === undefined ? {} : { waitsFor: this.#waitsFor }),
      ...(this.#waitsUntil === undefined ? {} : { waitsUntil: new Date(this.#waitsUntil).toISOString() }),
      ...(cancel === undefined ? {} : { cancel: { mode: cancel.mode, reason: cancel.reason } }),
    };
  }

  #details(): string {
    const s = this.status();
    const row = (name: string, value: string | number | undefined) => (value === undefined || value === '' ? [] : [`| ${name} | ${String(value).replaceAll('|', '\\|')} |`]);
    return [
      `| Runner | ${s.phase} |`,
      '|---|---|',
      ...row('Name', s.runnerName),
      ...row('Scope', this.spec.scope?.name),
      ...row('Pod', s.pod),
      ...row('Node', s.node),
      ...row('Job', s.job),
      ...row('Waits for', s.waitsFor),
      ...row('Until', s.waitsUntil),
      ...row('Cancel', s.cancel && `${s.cancel.mode} ${s.cancel.reason}`),
      ...this.spec.warnings.flatMap((warning) => row('Warning', warning)),
      ...s.replaced.flatMap((lost) => row('Replaced', `${lost.runnerName} (${lost.cause})`)),
    ].join('\n');
  }
}
