/** Observations of the cluster by a set with `capacity: observed`. */
import type { CapacityObservation } from '../../core/activities/index.ts';
import { minAndMax } from '../../core/domain/scale.ts';
import { declaredBounds, observesCapacity } from './bounds.ts';
import { applyObservation, decideCapacity, isUnplaced, MAX_OBSERVED } from './capacity.ts';
import type { SetStateData } from './carriedState.ts';
import type { Holds } from './holds.ts';
import type { SetRunners } from './runners.ts';

/** Applies observations of the cluster to the limit and the runners of a set. */
export class CapacityObserver {
  readonly #facts: SetStateData;
  readonly #runners: SetRunners;
  readonly #holds: Holds;
  #isPending = false;

  /** @param facts - facts of the set, which this changes */
  constructor(facts: SetStateData, runners: SetRunners, holds: Holds) {
    this.#facts = facts;
    this.#runners = runners;
    this.#holds = holds;
  }

  /** Whether an observation has been requested and is not there yet. */
  get isPending(): boolean {
    return this.#isPending;
  }

  /** Records the start of an observation. @returns the workflow IDs of the runners to look for */
  onStarted(now: number): string[] {
    this.#isPending = true;
    this.#facts.observedAt = now;
    return this.#runners
      .all()
      .filter(isUnplaced)
      .slice(0, MAX_OBSERVED)
      .map(({ workflowId }) => workflowId);
  }

  /**
   * Applies an observation.
   * @param observed - workflow IDs of the runners that it looked for
   */
  onObserved(observed: readonly string[], found: CapacityObservation, now: number): void {
    const facts = this.#facts;
    const runners = this.#runners;
    this.#isPending = false;
    if (!observesCapacity(facts)) return;
    applyObservation(runners.all(), new Set(observed), found, now);
    const { limit, withdraw } = decideCapacity(
      {
        before: facts.clusterLimit,
        placed: Math.max(found.placed, facts.placed ?? 0),
        // The others do not leave because of the limit, so they would block each probe.
        waiting: runners
          .all()
          .filter(
            (runner) =>
              isUnplaced(runner) &&
              runner.templateHash === facts.spec.templateHash &&
              runner.withdrawn !== true &&
              !this.#holds.isHeld(runner),
          ),
        max: minAndMax(declaredBounds(facts)).max,
      },
      now,
    );
    facts.placed = found.placed;
    delete facts.clusterLimit;
    if (limit !== undefined) facts.clusterLimit = limit;
    for (const workflowId of withdraw)
      Object.assign(runners.get(workflowId) ?? {}, { withdrawn: true });
  }

  /** Handles an observation that failed. */
  onFailed(): void {
    this.#isPending = false;
  }
}
