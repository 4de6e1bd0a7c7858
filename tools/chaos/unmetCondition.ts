/** What is not yet as it shall be. */
export interface UnmetCondition {
  readonly what: string;
  /** Whose timeline tells more. */
  readonly life?: string;
}
