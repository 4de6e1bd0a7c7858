/** Activities of the `sweep` workflow. */
import type { SweepReport } from '../contract/index.ts';

/** Activities of the `sweep` workflow. */
export interface SweepActivities {
  /**
   * Runs one sweep of the location that this worker serves, with the marks of the previous sweep of
   * that task queue.
   * @throws ApplicationFailure `SweepIncomplete`, with the report as its detail, if a list could
   * not be read; nothing was changed then
   */
  sweepPlace(input: SweepLocationInput): Promise<SweepReport>;
}

/** Input of {@link SweepActivities.sweepPlace}. */
export interface SweepLocationInput {
  /** Input of the workflow, not validated yet. */
  readonly input: unknown;
  /** Task queue of the workflow. */
  readonly taskQueue: string;
}
