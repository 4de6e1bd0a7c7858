import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { interruption } from '../bench/interruption.ts';
import type { ActiveFault } from './faults/fault.ts';
import { FAULTS } from './faults/index.ts';
import type { FaultKind } from './faultKinds.ts';
import { violationsOf, type Violation } from './invariants.ts';
import type { UnmetCondition } from './unmetCondition.ts';
import { leftovers, recordEnds, activeRunners, unsettledRunners } from './leftovers.ts';
import { Questions, type WhyStatistics } from './questions.ts';
import { scheduleOf, type PlannedFault, type ScheduleOptions } from './schedule.ts';
import { timelineWithHistory } from './timelineWithHistory.ts';
import { Workload } from './workload.ts';
import { openChaosEnvironment, type ChaosEnvironment, type ChaosWorldOptions } from './world.ts';

/** Options of {@link runChaos}. */
export type ChaosOptions = ScheduleOptions & ChaosWorldOptions;

/** Result of a chaos run. */
export interface ChaosReport {
  readonly seed: number;
  /** Number of runner workflows that have ended. */
  readonly runners: number;
  readonly jobs: number;
  /** Number of faults of each kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly settledMs: SettleTimes;
  /**
   * Factor of the time limits for `waits` and `rest`: runnable processes per CPU at the end of the
   * faults, at least 1.
   */
  readonly slowdown: number;
  /** Answers of `holdfast why` about waiting jobs. */
  readonly why: WhyStatistics;
  readonly violations: readonly (Violation & { readonly timeline?: readonly string[] })[];
}

/** Durations until a run had settled (ms). */
interface SettleTimes {
  /** From the end of the last fault until no runner was starting or ending that was then. */
  readonly waits: number;
  /** From the end of the last job until only the desired runners remained. */
  readonly rest: number;
  /** From the drain of the sets until nothing remained. */
  readonly deleted: number;
}

/**
 * Time after the end of a fault within which waits for it end (ms).
 * @see docs/lifecycle.md, When a server is unavailable
 */
const RECOVERY_MS = 10_000;
/**
 * Time after the kill of a worker until other workers have its tasks (ms): its activities after
 * HEARTBEAT_TIMEOUT (workflows/shared/activityProxies.ts), then the workflow task, which is sticky
 * for the 10 s of the SDK.
 */
const FAILOVER_MS = 25_000;
/**
 * Time within which a set notices the end of a job whose event was lost (ms). It checks the list of
 * the CI server, here every five seconds, and the list may be ten seconds old
 * (workflows/runnerSet/jobs.ts).
 */
const LOST_EVENT_MS = 15_000;
const WORKER_KILLS = new Set<FaultKind>(['worker_killed', 'workers_killed']);
/**
 * Maximum time without progress (ms). Longer than all intended waits, which are
 * `intervals.lateCreationWindow` and the retry interval of a `deregistration`.
 */
const TIMEOUT_MS = 240_000;
const CHECK_INTERVAL_MS = 500;
const MAINTENANCE_INTERVAL_MS = 1_000;
const PROGRESS_INTERVAL_MS = 10_000;
const QUERY_INTERVAL_MS = 10_000;

/**
 * Runs the schedule of a seed on the real components, waits until all runners have ended, and
 * checks the invariants.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const world = await openChaosEnvironment(options);
  const run = new Run(world, options);
  try {
    return await Promise.race([interruption(), run.play()]);
  } finally {
    run.stop();
    await world.close();
  }
}

class Run {
  readonly #world: ChaosEnvironment;
  readonly #options: ChaosOptions;
  readonly #users: Workload;
  readonly #questions: Questions;
  readonly #counts: Partial<Record<FaultKind, number>> = {};
  readonly #found: Violation[] = [];
  readonly #reported = new Set<string>();
  readonly #background = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #slowdown = 1;
  #failure: unknown;

  constructor(world: ChaosEnvironment, options: ChaosOptions) {
    this.#world = world;
    this.#options = options;
    this.#users = new Workload(world, options.runners);
    this.#questions = new Questions(world);
  }

  async play(): Promise<ChaosReport> {
    const { observer, workers } = this.#world;
    await this.#users.startSets();
    const schedule = scheduleOf(this.#options);
    const steps = [
      ...schedule.faults.map((fault) => ({ atMs: fault.atMs, take: () => this.#inject(fault) })),
      ...schedule.work.map((work) => ({ atMs: work.atMs, take: () => this.#users.work(work) })),
    ].toSorted((a, b) => a.atMs - b.atMs);
    const startedAt = observer.now();
    this.#repeat(MAINTENANCE_INTERVAL_MS, async () => await this.#users.maintain());
    this.#repeat(PROGRESS_INTERVAL_MS, () => this.#reportProgress());
    this.#repeat(QUERY_INTERVAL_MS, async () => await this.#questions.ask());
    for (const { atMs, take } of steps) {
      await delay(Math.max(0, startedAt + atMs - observer.now()));
      this.#check();
      this.#inBackground(take());
    }
    await delay(Math.max(0, startedAt + this.#options.durationMs - observer.now()));
    while (this.#background.size > 0) await Promise.all(this.#background);
    await workers.ready();
    this.#options.progress('all faults have ended');
    const faultsEndedAt = observer.now();
    this.#slowdown = Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
    const settledMs = await this.#settle(faultsEndedAt);
    this.stop();
    return await this.#report(settledMs);
  }

  /** Injects a fault, and ends it after its duration. */
  async #inject(planned: PlannedFault): Promise<void> {
    const { kind, forMs } = planned;
    const { observer } = this.#world;
    const active = await this.#begin(planned);
    if (active === undefined) return;
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1;
    const target = active.target === undefined ? {} : { target: active.target };
    observer.add({ kind: 'fault', fault: kind, edge: 'begins', ...target });
    if (active.end === undefined) return;
    await delay(forMs);
    await active.end();
    observer.add({ kind: 'fault', fault: kind, edge: 'ends', ...target });
  }

  /** Begins a fault. Another fault may prevent this, such as an unavailable API server. */
  async #begin(planned: PlannedFault): Promise<ActiveFault | undefined> {
    try {
      return await FAULTS[planned.kind](this.#world, planned);
    } catch (error) {
      this.#options.progress(
        `${planned.kind} was not injected: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
      );
      return undefined;
    }
  }

  /** Waits until jobs have ended, then for the desired runners only, and then for their end. */
  async #settle(faultsEndedAt: number): Promise<SettleTimes> {
    const { observer } = this.#world;
    let initial: Set<string | undefined> | undefined;
    const waits = async (): Promise<UnmetCondition[]> => {
      const now = await activeRunners(this.#world);
      initial ??= new Set(now.map(({ workflowId }) => workflowId));
      return now.filter(({ workflowId }) => initial?.has(workflowId));
    };
    await this.#awaitNone(
      'every wait to end',
      waits,
      Math.max(faultsEndedAt, this.#lastWorkerKill() + FAILOVER_MS) + RECOVERY_MS - observer.now(),
    );
    const waitsEndedAt = observer.now();
    await this.#awaitNone('all jobs to end', () =>
      observer.openJobs().map(({ id, status }) => ({ what: `job ${id} is ${status}` })),
    );
    const jobsEndedAt = observer.now();
    await this.#awaitNone(
      'only the desired runners to remain',
      async () => await unsettledRunners(this.#world, this.#users),
      Math.max(faultsEndedAt + LOST_EVENT_MS - jobsEndedAt, 0) + RECOVERY_MS,
    );
    const restAt = observer.now();
    await this.#users.drain();
    await this.#awaitNone('nothing to remain', async () => await leftovers(this.#world));
    return {
      waits: waitsEndedAt - faultsEndedAt,
      rest: restAt - jobsEndedAt,
      deleted: observer.now() - restAt,
    };
  }

  #lastWorkerKill(): number {
    return (
      this.#world.observer.entries.findLast(
        (entry) =>
          entry.kind === 'fault' && entry.edge === 'begins' && WORKER_KILLS.has(entry.fault),
      )?.at ?? 0
    );
  }

  /**
   * Waits until no condition is unmet. Conditions that are unmet at the limit are violations.
   * @param limitMs - time limit on an idle machine, without slowdown
   */
  async #awaitNone(
    what: string,
    unmetConditions: () => Promise<UnmetCondition[]> | UnmetCondition[],
    limitMs = TIMEOUT_MS,
  ): Promise<void> {
    const adjustedMs = Math.round(Math.min(TIMEOUT_MS, limitMs * this.#slowdown));
    const startedAt = performance.now();
    let [fewest, fewerAt] = [Number.POSITIVE_INFINITY, startedAt];
    const addViolations = (conditions: readonly UnmetCondition[], ms: number): void => {
      for (const { what: message, workflowId } of conditions)
        this.#found.push({
          rule: `within ${ms / 1_000} s: ${what}`,
          message,
          ...(workflowId === undefined ? {} : { workflowId }),
        });
    };
    // A check may fail on a busy machine.
    const check = async (): Promise<UnmetCondition[]> =>
      await Promise.resolve(unmetConditions()).catch((error: unknown) => [
        { what: `the check failed: ${String(error)}` },
      ]);
    let isLate = false;
    for (let reportedAt = performance.now(); ; await delay(CHECK_INTERVAL_MS)) {
      this.#check();
      const last = await check();
      if (last.length === 0) return;
      if (last.length < fewest) [fewest, fewerAt] = [last.length, performance.now()];
      if (performance.now() - reportedAt > PROGRESS_INTERVAL_MS) {
        reportedAt = performance.now();
        this.#options.progress(`waiting for ${what}: ${last.map((condition) => condition.what).join('; ').slice(0, 1_000)}`); // prettier-ignore
      }
      if (performance.now() - startedAt > adjustedMs && !isLate) {
        isLate = true;
        addViolations(last, adjustedMs);
      }
      if (performance.now() - fewerAt > TIMEOUT_MS)
        return adjustedMs < TIMEOUT_MS ? addViolations(last, TIMEOUT_MS) : undefined;
    }
  }

  async #report(settledMs: SettleTimes): Promise<ChaosReport> {
    const { observer } = this.#world;
    const { runners, violations: found } = await recordEnds(this.#world);
    const all = [...this.#found, ...found, ...violationsOf(observer.entries, true)];
    const violations = [];
    for (const violation of all) {
      const { workflowId } = violation;
      violations.push(
        workflowId === undefined
          ? violation
          : { ...violation, timeline: await timelineWithHistory(this.#world, workflowId) },
      );
    }
    return {
      seed: this.#options.seed,
      runners,
      jobs: this.#users.jobs,
      faults: this.#counts,
      settledMs,
      why: this.#questions.result(),
      slowdown: Math.round(this.#slowdown * 10) / 10,
      violations,
    };
  }

  #reportProgress(): void {
    const { observer } = this.#world;
    const faults = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    this.#options.progress(
      `${this.#users.jobs} jobs (${observer.openJobs().length} open), ${observer.pods().length} pods, ${faults} faults`,
    );
    for (const { rule, message, workflowId } of violationsOf(observer.entries, false)) {
      const line = `VIOLATION: ${rule}: ${message}${workflowId === undefined ? '' : ` (${workflowId})`}`;
      if (!this.#reported.has(line)) this.#options.progress(line);
      this.#reported.add(line);
    }
  }

  #inBackground(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => void (this.#failure ??= error))
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  /** Ends the repeated work. */
  stop(): void {
    this.#stop.abort();
  }

  #repeat(everyMs: number, work: () => Promise<void> | void): void {
    const stop = this.#stop;
    const loop = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        // Errors are ignored: a server may be unavailable, and the work is repeated.
        await Promise.resolve(work()).catch(() => undefined);
        await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    };
    void loop();
  }

  /** @throws Error if the run itself has failed */
  #check(): void {
    this.#world.check();
    if (this.#failure !== undefined)
      throw new Error('the chaos run itself failed', { cause: this.#failure });
  }
}
