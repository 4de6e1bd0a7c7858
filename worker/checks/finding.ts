/** Result of one check of the settings or the environment. */
export interface Finding {
  /**
   * `error`: runners cannot work. `warning`: runners work with a restriction. `ok`: the check
   * passed.
   */
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** Next step, as a command where one exists. Absent for a passed check. */
  readonly fix?: string;
}
