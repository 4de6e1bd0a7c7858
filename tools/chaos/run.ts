import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { interruption } from '../bench/interruption.ts';
import type { Ongoing } from './faults/fault.ts';
import { FAULTS } from './faults/index.ts';
import type { FaultKind } from './faultKinds.ts';
import { violationsOf, type Violation } from './invariants.ts';
import type { UnmetCondition } from './unmetCondition.ts';
import { leftovers, recordEnds, activeRunners, unsettledRunners } from './leftovers.ts';
import { Questions, type AskedWhy } from './questions.ts';
import { scheduleOf, type PlannedFault, type ScheduleOptions } from './schedule.ts';
import { timelineWithHistory } from './timelineWithHistory.ts';
import { Workload } from './workload.ts';
import { openChaosEnvironment, type ChaosEnvironment, type ChaosWorldOptions } from './world.ts';

export type ChaosOptions = ScheduleOptions & ChaosWorldOptions;

export interface ChaosReport {
  readonly seed: number;
  /** Runners' workflows that have ended. */
  readonly lives: number;
  readonly jobs: number;
  /** How often each kind happened. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /**
   * In ms: from the last fault's end until all who were coming up or going then were there or gone; from the last job's end until only those were left
   * that are wanted; from the sets' drain until nothing was.
   */
  readonly settledMs: { readonly waits: number; readonly rest: number; readonly gone: number };
  /** Factor of the time limits of `waits` and `rest`: runnable processes per CPU when the faults were over, 1 at least. */
  readonly slowdown: number;
  /** What `holdfast why` answered about jobs that waited. */
  readonly why: AskedWhy;
  readonly violations: readonly (Violation & { readonly timeline?: readonly string[] })[];
}

/** What waited for a fault's end is over so soon after it. @see docs/lifecycle.md, When a server is unavailable */
const SOON_MS = 10_000;
/**
 * A worker's death is over for what it had in its hands when Temporal has noticed: its calls after HEARTBEAT_TIMEOUT (workflows/shared/activityProxies.ts), and then
 * the workflow's task, for which its own workers are preferred, after the SDK's 10 s.
 */
const DEATH_MS = 25_000;
/**
 * A set that has lost the event of a job's end learns of it by a look at the CI server's list, every five seconds here, which proves nothing of the last
 * ten (workflows/runnerSet/jobs.ts).
 */
const HEALED_MS = 15_000;
const DEATHS = new Set<FaultKind>(['worker_killed', 'workers_killed']);
/** Without any progress. Longer than any of the waits on purpose: `intervals.lateCreationWindow`, a `deregistration`'s pace. */
const TIMEOUT_MS = 240_000;
const CHECK_INTERVAL_MS = 500;
const TEND_EVERY_MS = 1_000;
const TELL_EVERY_MS = 10_000;
const ASK_EVERY_MS = 10_000;

/** Plays the schedule of a seed on the real components, awaits that all comes to rest and to its end, and judges what happened. */
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
  readonly #told = new Set<string>();
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
      ...schedule.faults.map((fault) => ({ atMs: fault.atMs, take: () => this.#happen(fault) })),
      ...schedule.work.map((work) => ({ atMs: work.atMs, take: () => this.#users.work(work) })),
    ].toSorted((a, b) => a.atMs - b.atMs);
    const startedAt = observer.now();
    this.#repeat(TEND_EVERY_MS, async () => await this.#users.maintain());
    this.#repeat(TELL_EVERY_MS, () => this.#tell());
    this.#repeat(ASK_EVERY_MS, async () => await this.#questions.ask());
    for (const { atMs, take } of steps) {
      await delay(Math.max(0, startedAt + atMs - observer.now()));
      this.#check();
      this.#inBackground(take());
    }
    await delay(Math.max(0, startedAt + this.#options.durationMs - observer.now()));
    while (this.#background.size > 0) await Promise.all(this.#background);
    await workers.ready();
    this.#options.progress('all faults are over');
    const calmAt = observer.now();
    this.#slowdown = Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
    const settledMs = await this.#settle(calmAt);
    this.stop();
    return await this.#report(settledMs);
  }

  /** One fault from its beginning to its end. */
  async #happen(planned: PlannedFault): Promise<void> {
    const { kind, forMs } = planned;
    const { observer } = this.#world;
    const ongoing = await this.#begin(planned);
    if (ongoing === undefined) return;
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1;
    const whom = ongoing.whom === undefined ? {} : { whom: ongoing.whom };
    observer.add({ kind: 'fault', fault: kind, edge: 'begins', ...whom });
    if (ongoing.end === undefined) return;
    await delay(forMs);
    await ongoing.end();
    observer.add({ kind: 'fault', fault: kind, edge: 'ends', ...whom });
  }

  /** What another fault stands in the way of does not happen: an eviction while the API server is away. */
  async #begin(planned: PlannedFault): Promise<Ongoing | undefined> {
    try {
      return await FAULTS[planned.kind](this.#world, planned);
    } catch (error) {
      this.#options.progress(
        `${planned.kind} did not happen: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
      );
      return undefined;
    }
  }

  /** Awaits that jobs are done, that only the runners that are wanted are there, and at last that nothing is. */
  async #settle(calmAt: number): Promise<ChaosReport['settledMs']> {
    const { observer } = this.#world;
    let lives: Set<string | undefined> | undefined;
    const waits = async (): Promise<UnmetCondition[]> => {
      const now = await activeRunners(this.#world);
      lives ??= new Set(now.map(({ life }) => life));
      return now.filter(({ life }) => lives?.has(life));
    };
    await this.#comes(
      'every wait to be over',
      waits,
      Math.max(calmAt, this.#lastDeath() + DEATH_MS) + SOON_MS - observer.now(),
    );
    const overAt = observer.now();
    await this.#comes('all jobs to end', () =>
      observer.openJobs().map(({ id, status }) => ({ what: `job ${id} is ${status}` })),
    );
    const doneAt = observer.now();
    await this.#comes(
      'all to be at rest',
      async () => await unsettledRunners(this.#world, this.#users),
      Math.max(calmAt + HEALED_MS - doneAt, 0) + SOON_MS,
    );
    const restAt = observer.now();
    await this.#users.drain();
    await this.#comes('nothing to be left', async () => await leftovers(this.#world));
    return { waits: overAt - calmAt, rest: restAt - doneAt, gone: observer.now() - restAt };
  }

  #lastDeath(): number {
    return (
      this.#world.observer.entries.findLast(
        (entry) => entry.kind === 'fault' && entry.edge === 'begins' && DEATHS.has(entry.fault),
      )?.at ?? 0
    );
  }

  /** Waits until nobody is in the way any more. Who still is after `quietSoonMs` on a machine with CPU to spare, or when nothing has changed for long, is a violation. */
  async #comes(
    what: string,
    inTheWay: () => Promise<UnmetCondition[]> | UnmetCondition[],
    quietSoonMs = TIMEOUT_MS,
  ): Promise<void> {
    const soonMs = Math.round(Math.min(TIMEOUT_MS, quietSoonMs * this.#slowdown));
    const startedAt = performance.now();
    let [fewest, fewerAt] = [Number.POSITIVE_INFINITY, startedAt];
    const tooLate = (obstacles: readonly UnmetCondition[], ms: number): void => {
      for (const { what: message, life } of obstacles)
        this.#found.push({
          rule: `within ${ms / 1_000} s: ${what}`,
          message,
          ...(life === undefined ? {} : { life }),
        });
    };
    // A look may fail on a busy machine.
    const look = async (): Promise<UnmetCondition[]> =>
      await Promise.resolve(inTheWay()).catch((error: unknown) => [
        { what: `it could not be looked at: ${String(error)}` },
      ]);
    let isLate = false;
    for (let toldAt = performance.now(); ; await delay(CHECK_INTERVAL_MS)) {
      this.#check();
      const last = await look();
      if (last.length === 0) return;
      if (last.length < fewest) [fewest, fewerAt] = [last.length, performance.now()];
      if (performance.now() - toldAt > TELL_EVERY_MS) {
        toldAt = performance.now();
        this.#options.progress(`waiting for ${what}: ${last.map((obstacle) => obstacle.what).join('; ').slice(0, 1_000)}`); // prettier-ignore
      }
      if (performance.now() - startedAt > soonMs && !isLate) {
        isLate = true;
        tooLate(last, soonMs);
      }
      if (performance.now() - fewerAt > TIMEOUT_MS)
        return soonMs < TIMEOUT_MS ? tooLate(last, TIMEOUT_MS) : undefined;
    }
  }

  async #report(settledMs: ChaosReport['settledMs']): Promise<ChaosReport> {
    const { observer } = this.#world;
    const { lives, violations: found } = await recordEnds(this.#world);
    const all = [...this.#found, ...found, ...violationsOf(observer.entries, true)];
    const violations = [];
    for (const violation of all) {
      violations.push(
        violation.life === undefined
          ? violation
          : { ...violation, timeline: await timelineWithHistory(this.#world, violation.life) },
      );
    }
    return {
      seed: this.#options.seed,
      lives,
      jobs: this.#users.jobs,
      faults: this.#counts,
      settledMs,
      why: this.#questions.result(),
      slowdown: Math.round(this.#slowdown * 10) / 10,
      violations,
    };
  }

  #tell(): void {
    const { observer } = this.#world;
    const faults = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    this.#options.progress(
      `${this.#users.jobs} jobs (${observer.openJobs().length} open), ${observer.pods().length} pods, ${faults} faults`,
    );
    for (const { rule, message, life } of violationsOf(observer.entries, false)) {
      const line = `VIOLATION: ${rule}: ${message}${life === undefined ? '' : ` (${life})`}`;
      if (!this.#told.has(line)) this.#options.progress(line);
      this.#told.add(line);
    }
  }

  #inBackground(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => void (this.#failure ??= error))
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  /** Ends whatever it does again and again. */
  stop(): void {
    this.#stop.abort();
  }

  #repeat(everyMs: number, work: () => Promise<void> | void): void {
    const stop = this.#stop;
    const loop = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        // Whoever looks after things looks again when a server is away.
        await Promise.resolve(work()).catch(() => undefined);
        await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    };
    void loop();
  }

  /** @throws Error when the run itself is broken */
  #check(): void {
    this.#world.check();
    if (this.#failure !== undefined)
      throw new Error('the chaos run itself failed', { cause: this.#failure });
  }
}
