/** One thing that a check of the surroundings found. */
export interface Finding {
  /** `error`: runners cannot work; `warning`: they can, worse; `ok`: as it should be. */
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** Next step, as a command where one exists. Absent for a passed check. */
  readonly fix?: string;
}
