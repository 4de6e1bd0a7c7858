/** The runners of a set, as far as it knows: from its own starts, their signals, job events and Temporal's visibility. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { RunnerPhase } from '../../core/contract/index.ts';
import { runnerSuffix, runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { ListedRunner } from '../../core/activities/index.ts';
import {
  decodeEnded,
  decodeRunners,
  encodeRunners,
  type CarriedRunners,
} from './carriedRunners.ts';
import { BUSY_LAG_MS } from './jobs.ts';
import { UNKNOWN_GENERATION, type SetRunner } from './runnerRecord.ts';

/** Visibility may be behind for this long: it lists who has ended, and not yet who was started. Temporal is not asked for each of those. */
const VISIBILITY_LAG_MS = 5_000;
/** For this long the end of a runner is remembered against a list that still has it. */
const REMEMBER_ENDED_MS = 60_000;
const LEAVING: ReadonlySet<RunnerPhase> = new Set([
  'Draining',
  'Unregistering',
  'TearingDown',
  'Gone',
]);

/**
 * Runners of a set. It combines starts, runner events, job events and lists from Temporal's
 * visibility.
 */
export class SetRunners {
  readonly #set: string;
  readonly #runners = new Map<string, SetRunner>();
  readonly #ended = new Map<string, number>();

  constructor(set: string, carried?: CarriedRunners) {
    this.#set = set;
    if (carried === undefined) return;
    for (const runner of decodeRunners(set, carried)) this.#runners.set(runner.workflowId, runner);
    for (const [workflowId, at] of decodeEnded(set, carried.ended)) this.#ended.set(workflowId, at);
  }

  carry(): CarriedRunners {
    return encodeRunners(this.#set, this.all(), this.#ended);
  }

  get size(): number {
    return this.#runners.size;
  }

  all(): SetRunner[] {
    return [...this.#runners.values()];
  }

  get(workflowId: string): SetRunner | undefined {
    return this.#runners.get(workflowId);
  }

  /** By name at the CI server, or by workflow id. */
  find(nameOrId: string): SetRunner | undefined {
    const named = this.#runners.get(runnerWorkflowIdFromName(this.#set, nameOrId) ?? '');
    return this.#runners.get(nameOrId) ?? (named?.runnerName === nameOrId ? named : undefined);
  }

  add(
    { workflowId, slot }: { workflowId: string; slot?: number },
    templateHash: string,
    ephemeral: boolean,
    now: number,
  ): void {
    this.#runners.set(workflowId, {
      workflowId,
      templateHash,
      ephemeral,
      startedAt: now,
      state: 'starting',
      jobReported: false,
      ...omitUndefined({ slot }),
    });
  }

  setState(runner: SetRunner, state: SetRunner['state'], now: number): void {
    runner.state = state;
    if (state === 'busy') runner.busySince ??= now;
    else delete runner.busySince;
    if (state === 'idle' || state === 'busy') runner.onlineSince ??= now;
    if (state === 'starting') delete runner.onlineSince;
  }

  /** Sets the name of the runner at the CI server. Another name is that of its replacement. */
  rename(runner: SetRunner, runnerName: string): void {
    if (runner.runnerName === runnerName) return;
    if (runner.runnerName !== undefined) {
      runner.jobReported = false;
      delete runner.onlineSince;
    }
    runner.runnerName = runnerName;
  }

  /** The set has asked it to drain. That it does is for the runner itself to say. */
  markDrainRequested(runner: SetRunner, now: number): void {
    this.setState(runner, 'draining', now);
    runner.drainRequested = { at: now, times: (runner.drainRequested?.times ?? 0) + 1 };
  }

  /** @returns what was known of it; `undefined` when it was not known (any more) */
  remove(workflowId: string, now: number): SetRunner | undefined {
    const known = this.#runners.get(workflowId);
    this.#runners.delete(workflowId);
    this.#ended.set(workflowId, now);
    for (const [id, at] of this.#ended) {
      if (at > now - REMEMBER_ENDED_MS) break;
      this.#ended.delete(id);
    }
    return known;
  }

  hasEnded(workflowId: string): boolean {
    return this.#ended.has(workflowId);
  }

  /** The lowest numbers that no runner has, those that leave included: each stands for a volume. */
  freeSlots(count: number): number[] {
    const taken = new Set(this.all().map(({ slot }) => slot));
    const free: number[] = [];
    for (let slot = 0; free.length < count; slot++) if (!taken.has(slot)) free.push(slot);
    return free;
  }

  /** Those that visibility should list by now, and does not: whether they are gone is for Temporal itself to say. */
  missing(listed: readonly ListedRunner[], now: number): string[] {
    const seen = new Set(listed.map(({ workflowId }) => workflowId));
    return this.all().flatMap(({ workflowId, startedAt }) =>
      !seen.has(workflowId) && startedAt < now - VISIBILITY_LAG_MS ? [workflowId] : [],
    );
  }

  /** Those listed that are not known, and may be this set's: one that is not there would keep another from being started. */
  unknown(listed: readonly ListedRunner[]): string[] {
    return listed.flatMap(({ workflowId }) =>
      !this.#runners.has(workflowId) && this.#isOurs(workflowId) ? [workflowId] : [],
    );
  }

  /** Not one that has ended meanwhile, or was started by hand with this set's name. */
  #isOurs(workflowId: string): boolean {
    return !this.#ended.has(workflowId) && runnerSuffix(this.#set, workflowId) !== undefined;
  }

  /**
   * Takes in what visibility lists: each runner's own word on what it does.
   * @param hasJob - by job events, which are ahead of visibility
   */
  list(
    listed: readonly ListedRunner[],
    now: number,
    hasJob: (runnerName: string) => boolean,
  ): void {
    for (const one of listed) {
      if (!this.#isOurs(one.workflowId)) continue;
      const known = this.#runners.get(one.workflowId) ?? this.#adopt(one);
      // In the place of a runner that it lost, a life goes on with another, which has had no job yet.
      if (one.runnerName !== undefined) this.rename(known, one.runnerName);
      const state = stateOf(one.phase, known, hasJob, now);
      if (state === 'draining') delete known.drainRequested;
      if (known.drainRequested === undefined) this.setState(known, state, now);
    }
  }

  #adopt({
    workflowId,
    templateHash = UNKNOWN_GENERATION[0],
    ephemeral = UNKNOWN_GENERATION[1],
    startedAt,
    slot,
  }: ListedRunner): SetRunner {
    const runner: SetRunner = {
      workflowId,
      templateHash,
      ephemeral,
      startedAt,
      state: 'starting',
      jobReported: false,
      ...omitUndefined({ slot }),
    };
    this.#runners.set(workflowId, runner);
    return runner;
  }
}

function stateOf(
  phase: RunnerPhase,
  { runnerName, state, ephemeral, jobReported, busySince }: SetRunner,
  hasJob: (runnerName: string) => boolean,
  now: number,
): SetRunner['state'] {
  if (LEAVING.has(phase)) return 'draining';
  if (phase === 'Busy' || (runnerName !== undefined && hasJob(runnerName))) return 'busy';
  // An ephemeral runner that has had its job waits for no other.
  if (ephemeral && jobReported) return 'busy';
  // Its own word that its job has started is ahead of visibility.
  if (phase === 'Idle')
    return ephemeral && busySince !== undefined && now - busySince < BUSY_LAG_MS ? 'busy' : 'idle';
  // One that was leaving is none that is lost: its life goes on with another runner.
  if (state === 'draining') return 'starting';
  // Its own signal that it is online is ahead of visibility.
  return state;
}
