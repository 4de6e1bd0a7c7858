/** Part of a condition that does not hold yet. */
export interface UnmetCondition {
  readonly what: string;
  /** ID of the workflow whose timeline shows the cause. */
  readonly workflowId?: string;
}
