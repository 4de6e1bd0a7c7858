/** Guards of a set against starting a second runner for the same job. */
import { decodeEnded, encodeEnded, type CarriedRunners } from './carriedRunners.ts';
import type { SetStateData } from './carriedState.ts';
import type { SetJobs } from './jobs.ts';

/**
 * Ephemeral runners that ended with a job that no event has reported: workflow id to the time of
 * the end (ms since the epoch). They are not replaced until their guards are removed.
 */
export class Guards {
  readonly #set: string;
  readonly #ended: Map<string, number>;

  /**
   * @param carried - guards of the previous run, which anyone may have written
   * @param now - latest plausible time of these (ms since the epoch)
   */
  constructor(set: string, carried: CarriedRunners['ended'], now: number) {
    this.#set = set;
    this.#ended = new Map(decodeEnded(set, carried, now));
  }

  carry(): CarriedRunners['ended'] {
    return encodeEnded(this.#set, this.#ended);
  }

  get size(): number {
    return this.#ended.size;
  }

  /** Returns the workflow ids with the times of their ends (ms since the epoch). */
  entries(): [workflowId: string, endedAt: number][] {
    return [...this.#ended];
  }

  /** Returns the times at which the guarded runners ended (ms since the epoch). */
  endTimes(): number[] {
    return [...this.#ended.values()];
  }

  add(workflowId: string, endedAt: number): void {
    this.#ended.set(workflowId, endedAt);
  }

  /** @returns whether the runner was guarded */
  remove(workflowId: string): boolean {
    return this.#ended.delete(workflowId);
  }

  /** Removes the guards of runners that ended at such a time. */
  expire(isOver: (endedAt: number) => boolean): void {
    for (const [workflowId, endedAt] of this.#ended)
      if (isOver(endedAt)) this.#ended.delete(workflowId);
  }

  /**
   * Returns the number of runners that are not replaced yet. It never exceeds the number of jobs
   * that the missing events may be about.
   */
  count(jobs: SetJobs, scaleSet: SetStateData['scaleSet']): number {
    if (this.size === 0) return 0;
    if (scaleSet !== undefined) return Math.min(this.size, scaleSet.assigned);
    return Math.max(
      0,
      Math.min(this.size, jobs.queued - jobs.confirmedSince(Math.max(...this.#ended.values()))),
    );
  }
}
