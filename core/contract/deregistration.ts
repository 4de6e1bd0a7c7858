/** Public names of the workflow that goes on removing the registration of a runner that is gone. */
export const DEREGISTRATION_WORKFLOW = 'deregistration';

export interface DeregistrationInput {
  organization?: string;
  repository?: string;
  enterprise?: string;
  /** @default "default" */
  credential?: string;
  /** Its name, and its id where that is known. */
  runner: { name: string; id?: number };
  /** Shown to people. */
  reason?: string;
  /** How long to keep trying. @default "24h" */
  giveUpAfter?: string;
  /** First retry delay, doubles up to 15 times itself. @default "1m" */
  firstRetry?: string;
}

export interface DeregistrationResult {
  outcome: 'removed' | 'absent' | 'dangling';
  /** Tries, when one succeeded. */
  attempts?: number;
  message: string;
}
