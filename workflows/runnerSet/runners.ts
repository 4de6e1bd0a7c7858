/**
 * Runners of a set, as known from its own starts, their signals, job events and Temporal's
 * visibility.
 */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { RunnerPhase } from '../../core/contract/index.ts';
import { phaseOfState, stateOfPhase } from '../../core/domain/knownRunner.ts';
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

/**
 * Maximum lag of visibility (ms). Within it, visibility lists runners that have ended and misses
 * runners that were started. Temporal is not queried for each of those.
 */
const VISIBILITY_LAG_MS = 5_000;
/** Time for which the end of a runner is remembered, in case a list still contains it (ms). */
const REMEMBER_ENDED_MS = 60_000;

/**
 * Runners of a set. It combines starts, runner events, job events and lists from Temporal's
 * visibility.
 */
export class SetRunners {
  readonly #set: string;
  readonly #runners = new Map<string, SetRunner>();
  readonly #ended = new Map<string, number>();

  /**
   * @param carried - runners of the previous run, which anyone may have written
   * @param now - latest plausible time of these (ms since the epoch)
   */
  constructor(set: string, carried?: CarriedRunners, now = Number.POSITIVE_INFINITY) {
    this.#set = set;
    if (carried === undefined) return;
    for (const runner of decodeRunners(set, carried, now))
      this.#runners.set(runner.workflowId, runner);
    for (const [workflowId, at] of decodeEnded(set, carried.ended, now))
      this.#ended.set(workflowId, at);
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

  /** Returns a runner by its name at the CI server, or by its workflow id. */
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
      delete runner.hasNode;
      delete runner.noNode;
      delete runner.withdrawn;
    }
    runner.runnerName = runnerName;
  }

  /**
   * Records that the set requested the runner to drain. Only the runner itself reports that it is
   * draining.
   */
  markDrainRequested(runner: SetRunner, now: number): void {
    this.setState(runner, 'draining', now);
    runner.drainRequested = { at: now, times: (runner.drainRequested?.times ?? 0) + 1 };
  }

  /**
   * Removes a runner that has ended.
   *
   * @returns the runner; `undefined` if it was unknown or already removed
   */
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

  /**
   * Returns the lowest slot numbers that no runner has, including draining ones. Each slot has a
   * volume.
   */
  freeSlots(count: number): number[] {
    const taken = new Set(this.all().map(({ slot }) => slot));
    const free: number[] = [];
    for (let slot = 0; free.length < count; slot++) if (!taken.has(slot)) free.push(slot);
    return free;
  }

  /** Returns the runners as a list would contain them if it confirmed what the set knows. */
  asListed(): ListedRunner[] {
    return this.all().map(
      ({ workflowId, state, startedAt, templateHash, ephemeral, runnerName, slot }) => ({
        workflowId,
        phase: phaseOfState(state),
        startedAt,
        templateHash,
        ephemeral,
        ...omitUndefined({ runnerName, slot }),
      }),
    );
  }

  /**
   * Returns runners that visibility should list by now and does not. Whether they have ended must
   * be confirmed by Temporal itself.
   */
  missing(listed: readonly ListedRunner[], now: number): string[] {
    const seen = new Set(listed.map(({ workflowId }) => workflowId));
    return this.all().flatMap(({ workflowId, startedAt }) =>
      !seen.has(workflowId) && startedAt < now - VISIBILITY_LAG_MS ? [workflowId] : [],
    );
  }

  /**
   * Returns listed runners that are unknown and may belong to this set. A listed runner that does
   * not exist would prevent the start of another.
   */
  unknown(listed: readonly ListedRunner[]): string[] {
    return listed.flatMap(({ workflowId }) =>
      !this.#runners.has(workflowId) && this.#isOurs(workflowId) ? [workflowId] : [],
    );
  }

  /**
   * Whether the runner belongs to this set, has not ended meanwhile and was not started by hand
   * with this set's name.
   */
  #isOurs(workflowId: string): boolean {
    return !this.#ended.has(workflowId) && runnerSuffix(this.#set, workflowId) !== undefined;
  }

  /**
   * Applies a list from visibility, which contains the phase that each runner reports.
   *
   * @param hasJob - whether a runner has a job according to job events, which are ahead of
   * visibility
   */
  list(
    listed: readonly ListedRunner[],
    now: number,
    hasJob: (runnerName: string) => boolean,
  ): void {
    for (const one of listed) {
      if (!this.#isOurs(one.workflowId)) continue;
      const known = this.#runners.get(one.workflowId) ?? this.#adopt(one);
      // A workflow that lost its runner continues with another, which has not had a job yet.
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
  const listed = stateOfPhase(phase);
  if (listed === 'draining') return listed;
  if (listed === 'busy' || (runnerName !== undefined && hasJob(runnerName))) return 'busy';
  // An ephemeral runner that has had its job does not wait for another.
  if (ephemeral && jobReported) return 'busy';
  // The runner's signal that its job has started is ahead of visibility.
  if (listed === 'idle')
    return ephemeral && busySince !== undefined && now - busySince < BUSY_LAG_MS ? 'busy' : 'idle';
  // The workflow was draining and has a phase that does not: it has replaced its lost runner.
  if (state === 'draining') return 'starting';
  // The runner's signal that it is online is ahead of visibility.
  return state;
}
