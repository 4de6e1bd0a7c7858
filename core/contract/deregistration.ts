/** Public names of the workflow that goes on removing the registration of a runner that is gone. */
import type { Durations } from '../domain/duration.ts';

export const DEREGISTRATION_WORKFLOW = 'deregistration';

/** How long, and how often at first, a removal is tried, with the defaults. */
export const DEREGISTRATION_TIMEOUTS = {
  /** How long to keep trying. @default "24h" */
  timeout: '24h',
  /** First retry delay, doubles up to 15 times itself. @default "1m" */
  initialRetryInterval: '1m',
} as const;

/** Input of the `deregistration` workflow. */
export interface DeregistrationInput extends Durations<typeof DEREGISTRATION_TIMEOUTS> {
  /** Exactly one of these three. */
  organization?: string;
  repository?: string;
  enterprise?: string;
  /** @default "default" */
  credential?: string;
  /** Its name, and its id where that is known. */
  runner: { name: string; id?: string };
  /** Shown to people. */
  reason?: string;
}

export interface DeregistrationResult {
  outcome: 'removed' | 'absent' | 'dangling';
  /** Tries, when one succeeded. */
  attempts?: number;
  message: string;
}
