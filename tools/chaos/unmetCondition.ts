/** What is not yet as it shall be. */
export interface Obstacle {
  readonly what: string;
  /** Whose timeline tells more. */
  readonly life?: string;
}
