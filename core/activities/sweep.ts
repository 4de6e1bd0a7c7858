/** What the workflow `sweep` may ask of the world. */
import type { SweepReport } from '../contract/index.ts';

export interface SweepActivities {
  /**
   * One sweep of the place that this worker serves, with the marks of the last sweep of that task queue. Fails with `SweepIncomplete`, the report as its detail, where a list could not be had:
   * nothing was touched then.
   */
  sweepPlace(input: SweepLocationInput): Promise<SweepReport>;
}

export interface SweepLocationInput {
  /** What people wrote. */
  readonly input: unknown;
  /** Where the workflow runs. */
  readonly taskQueue: string;
}
