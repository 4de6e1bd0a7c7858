export interface Quarantined {
  /** YYYY-MM-DD */
  readonly since: string;
  readonly file: string;
  readonly reason: string;
}

export function readQuarantine(path: string | URL): Quarantined[];
