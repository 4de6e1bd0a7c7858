import { createHash } from 'node:crypto';
import { comparableText, stateOfPhase } from '../../core/domain/knownRunner.ts';
import type { JobEvent, RunnerSetInput } from '../../core/contract/index.ts';
import { decideSet, needsBusyEvents } from '../../workflows/runnerSet/decide.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { parseRunnerSetInput, type SetSpec } from '../../core/input/runnerSet.ts';
import { randomSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { SetState } from '../../workflows/runnerSet/state.ts';
import { randomOf } from './random.ts';
import { nextRun } from './nextRun.ts';

/** Resolution of random fractions. */
const GRAIN = 2 ** 30;

interface ModelRunner {
  readonly workflowId: string;
  readonly name: string;
  readonly generation: string;
  readonly ephemeral: boolean;
  readonly startedAt: number;
  readonly notifyBusy: boolean;
  phase: 'Provisioning' | 'Idle' | 'Busy' | 'Draining';
  job?: number;
  ranJob: boolean;
}

/** Kinds of messages between a set and its runners. */
export type MessageKind = 'start' | 'drain' | 'online' | 'busy' | 'ended';

export interface ModelDrain {
  readonly workflowId: string;
  readonly reason: string;
  readonly phase: ModelRunner['phase'];
  readonly held: boolean;
  readonly at: number;
  /** Runners that stay after it, and the largest desired number within `scaleDownDelay`. */
  readonly left: number;
  readonly recentPeak: number;
}

const hash = (template: unknown): string =>
  createHash('sha256').update(JSON.stringify(template)).digest('hex').slice(0, 10);

export function setSpec(input: Partial<RunnerSetInput> = {}): SetSpec {
  const full = {
    name: 'linux',
    template: { organization: 'acme' },
    ...(input.replicas === undefined ? { minIdle: 0, max: 10 } : {}),
    ...input,
  };
  const parsed = parseRunnerSetInput(full, { hash, checkSchedule: () => undefined });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { runner: _runner, ...spec } = parsed.spec;
  return spec;
}

/**
 * A set's decisions in a world in memory. Its requests are executed; the test triggers all other
 * events.
 */
export class SetModel {
  now = 1_000_000;
  input: RunnerSetInput;
  state: SetState;
  readonly runners = new Map<string, ModelRunner>();
  readonly drains: ModelDrain[] = [];
  /** Messages about starts after which the set had more runners than allowed. */
  readonly overfull: string[] = [];
  readonly queue: number[] = [];
  /** Events that the CI server has sent and that have not arrived. */
  readonly mail: JobEvent[] = [];
  #jobs = 0;
  readonly #below = randomOf(1);
  /** Continue as new at every step. */
  renews = false;
  /**
   * Lists the CI server's jobs; `undefined`: the server does not respond. Absent: this world has no
   * jobs.
   */
  look?: () => { jobs: CiJob[]; complete: boolean } | undefined;
  /** Number of messages of each kind. */
  readonly sent: Record<MessageKind, number> = { start: 0, drain: 0, online: 0, busy: 0, ended: 0 };
  readonly #loses: (kind: MessageKind, index: number) => boolean;
  /**
   * Whether a start or an end was lost, so that the set may count a runner that does not exist, and
   * drain it.
   */
  #someUnknown = false;
  /** Every desired number of runners, and the last time at which it was desired. */
  readonly #wanted: { readonly runners: number; until: number }[] = [];

  /**
   * @param loses - whether a message is lost, by its index among those of its kind; its sender does
   * not learn of it
   */
  constructor(
    input: RunnerSetInput,
    loses: (kind: MessageKind, index: number) => boolean = () => false,
  ) {
    this.#loses = loses;
    this.input = input;
    this.state = SetState.begin(setSpec(input), input, {}, this.now);
    this.step();
  }

  /** Advances time, and lets the set act until it has nothing to do. */
  step(ms = 3_000): void {
    this.now += ms;
    // Recorded before the following events are applied, because the size was desired until then.
    this.#recordWanted();
    if (this.renews) this.state = nextRun(this.state);
    for (let round = 0; round < 50; round++) {
      this.state.updateDemand(this.now);
      this.#recordWanted();
      const decision = decideSet(this.state, this.now);
      if (decision.listRunners) this.#list();
      else if (decision.checkQueue) {
        this.state.jobReports.onQueueCheckStarted(this.now);
        const seen = this.look?.();
        if (seen === undefined)
          this.state.jobReports.onQueueCheckFailed('not in this world', this.now);
        else
          this.state.jobReports.onQueueChecked(
            { ...seen, checkedAt: this.now, absent: [], endedSets: [] },
            this.now,
          );
      } else if (decision.start > 0) this.#start(decision.start);
      else if (decision.drain.length > 0) this.#drain(decision.drain);
      else return;
    }
    throw new Error('the set does not come to rest');
  }

  /** Lets this much time pass, in which the set's timers fire. */
  pass(ms: number): void {
    const until = this.now + ms;
    while (this.now < until) {
      const { wakeAt } = decideSet(this.state, this.now);
      this.step(Math.max(1, Math.min(wakeAt, until) - this.now));
    }
  }

  declare(change: Partial<RunnerSetInput>): void {
    const { replicas, minIdle, max, ...rest } = { ...this.input, ...change };
    const scale =
      change.max !== undefined || replicas === undefined
        ? { minIdle: minIdle ?? 0, max: max ?? 0 }
        : { replicas };
    this.input = { ...rest, ...scale };
    this.state.declare(setSpec(this.input), this.input, {}, this.now, this.now);
  }

  queueJob(): void {
    const jobId = ++this.#jobs;
    this.queue.push(jobId);
    this.#send('queued', jobId);
  }

  deliver(event: JobEvent): void {
    this.state.jobReports.onJobEvents([event], this.now);
  }

  comeOnline(runner: ModelRunner): void {
    if (runner.phase !== 'Provisioning') return;
    runner.phase = 'Idle';
    if (this.#arrives('online'))
      this.state.onRunnerOnline(
        { workflowId: runner.workflowId, runnerName: runner.name },
        this.now,
      );
  }

  takeJob(runner: ModelRunner): void {
    if (runner.phase !== 'Idle') return;
    const job = this.queue.shift();
    if (job === undefined) return;
    Object.assign(runner, { phase: 'Busy', job, ranJob: true });
    this.#send('in_progress', job, runner.name);
    if (runner.notifyBusy && this.#arrives('busy'))
      this.state.onRunnerBusy({ workflowId: runner.workflowId, runnerName: runner.name }, this.now);
  }

  finishJob(runner: ModelRunner): void {
    if (runner.job === undefined) return;
    this.#send('completed', runner.job, runner.name);
    delete runner.job;
    if (runner.ephemeral || runner.phase === 'Draining') this.end(runner);
    else runner.phase = 'Idle';
  }

  /** @param how - `drained`, or how it failed by itself. @default 'drained' */
  end(runner: ModelRunner, how: 'drained' | 'never_registered' | 'crashed' = 'drained'): void {
    this.runners.delete(runner.workflowId);
    if (!this.#arrives('ended')) {
      this.#someUnknown = true;
      return;
    }
    const wasOnline = runner.phase !== 'Provisioning';
    const outcome = {
      drained: 'succeeded',
      never_registered: 'errored',
      crashed: 'failed',
    } as const;
    this.state.onRunnerEnded(
      {
        workflowId: runner.workflowId,
        runnerName: runner.name,
        outcome: outcome[how],
        wasOnline,
        ranJob: runner.ranJob,
        ...(how === 'never_registered' ? { cause: how } : {}),
      },
      this.now,
    );
  }

  /** Returns the actual number of runners in a phase. */
  count(phase?: ModelRunner['phase']): number {
    return [...this.runners.values()].filter(
      (runner) => phase === undefined || runner.phase === phase,
    ).length;
  }

  pick(index: number): ModelRunner | undefined {
    return [...this.runners.values()][index % Math.max(1, this.runners.size)];
  }

  #send(action: JobEvent['action'], jobId: number, runnerName?: string): void {
    this.mail.push({
      action,
      jobId: String(jobId),
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: this.now,
      ...(runnerName === undefined ? {} : { runnerName }),
    });
  }

  #random = (): number => this.#below(GRAIN) / GRAIN;

  #arrives(kind: MessageKind): boolean {
    return !this.#loses(kind, this.sent[kind]++);
  }

  #list(): void {
    const listed = [...this.runners.values()].map(
      ({ workflowId, name: runnerName, phase, startedAt, generation, ephemeral }) => ({
        workflowId,
        runnerName,
        phase,
        startedAt,
        generation,
        ephemeral,
      }),
    );
    // As RunningSet does: values marked as known come from the set itself.
    const { runners, facts } = this.state;
    const known = new Map(
      runners
        .asListed()
        .map((one, index) => [comparableText(facts.spec.name, runners.all()[index]!), one]),
    );
    const merged = listed.map(
      (one) =>
        known.get(comparableText(facts.spec.name, { ...one, state: stateOfPhase(one.phase) })) ??
        one,
    );
    this.state.onRunnersListed(
      merged,
      this.state.unverified(merged, this.now).filter((id) => !this.runners.has(id)),
      this.now,
    );
  }

  #start(count: number): void {
    const { name, templateHash, ephemeral, maxSurge } = this.state.facts.spec;
    const started = Array.from({ length: count }, () => ({
      workflowId: runnerWorkflowId(name, randomSuffix(this.#random)),
    }));
    const notifyBusy = needsBusyEvents(this.state, this.now);
    this.state.onRunnersStarting(started, this.now);
    for (const { workflowId } of started) {
      if (!this.#arrives('start')) {
        this.#someUnknown = true;
        continue;
      }
      this.runners.set(workflowId, {
        workflowId,
        name: `${workflowId.slice('runner-'.length)}-0a1b2c3d4e`,
        generation: templateHash,
        ephemeral,
        startedAt: this.now,
        notifyBusy,
        phase: 'Provisioning',
        ranJob: false,
      });
    }
    const { max = Number.POSITIVE_INFINITY } = this.input;
    const old = [...this.runners.values()].filter(
      (runner) => runner.generation !== templateHash,
    ).length;
    if (this.runners.size > max + Math.min(maxSurge, old))
      this.overfull.push(`${this.runners.size} of ${max}, ${old} of an earlier template`);
  }

  /** Runners of the current template that the set expects to stay. */
  #staying(): number {
    const { runners, facts } = this.state;
    return runners
      .all()
      .filter(
        ({ state, templateHash }) =>
          state !== 'draining' && templateHash === facts.spec.templateHash,
      ).length;
  }

  /**
   * Returns the recent peak from the whole record of desired sizes, which the set does not keep.
   */
  #recentPeak(): number {
    const since = this.now - this.state.facts.spec.scaleDownDelayMs;
    const within = this.#wanted.filter(({ until }) => until > since);
    return Math.max(0, ...within.map(({ runners }) => runners));
  }

  #recordWanted(): void {
    const { desired } = this.state.facts;
    const last = this.#wanted.at(-1);
    if (last?.runners === desired) last.until = this.now;
    else this.#wanted.push({ runners: desired, until: this.now });
  }

  #drain(drains: readonly { workflowId: string; reason: string }[]): void {
    for (const { workflowId, reason } of drains) {
      const runner = this.runners.get(workflowId);
      const known = this.state.runners.get(workflowId);
      if (known === undefined || (runner === undefined && !this.#someUnknown))
        throw new Error(`${workflowId} is to be drained and does not exist`);
      if (runner === undefined) {
        this.state.onDrainRequested([workflowId], [workflowId], this.now);
        continue;
      }
      this.drains.push({
        workflowId,
        reason,
        phase: runner.phase,
        held: this.state.holds.isHeld(known),
        at: this.now,
        left: this.#staying() - 1,
        recentPeak: this.#recentPeak(),
      });
      this.state.onDrainRequested([workflowId], [], this.now);
      if (!this.#arrives('drain')) continue;
      if (runner.phase !== 'Busy') this.end(runner);
      else runner.phase = 'Draining';
    }
  }
}
