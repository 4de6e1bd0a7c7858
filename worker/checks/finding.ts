/** One thing that a check of the surroundings found. */
export interface Finding {
  /** `error`: runners cannot work; `warning`: they can, worse; `ok`: as it should be. */
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** What to do about it: a command wherever there is one. Absent when all is well. */
  readonly fix?: string;
}
