/**
 * Public names of the `deregistration` workflow, which keeps trying to remove a registration after
 * its runner is gone.
 */
import type { Durations } from '../domain/duration.ts';

/** Workflow type that removes the registration of a runner that no longer exists. */
export const DEREGISTRATION_WORKFLOW = 'deregistration';

/** Total time and retry pace of a removal, with the defaults. */
export const DEREGISTRATION_TIMEOUTS = {
  /** Time to keep trying. @default "24h" */
  timeout: '24h',
  /** Time to wait before the first retry. It doubles up to 15 times this value. @default "1m" */
  initialRetryInterval: '1m',
} as const;

/** Input of the `deregistration` workflow. */
export interface DeregistrationInput extends Durations<typeof DEREGISTRATION_TIMEOUTS> {
  /**
   * Scope of the registration. Exactly one of `organization`, `repository` and `enterprise` must be
   * set.
   */
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** Credential from the worker's settings. @default "default" */
  credential?: string;
  /** Name of the runner at the CI server, and the ID of its registration if it is known. */
  runner: { name: string; id?: string };
  /**
   * Whether the runner was registered in a scale set. Some servers list such runners only there.
   * @default false
   */
  inScaleSet?: boolean;
  /** Reason to show in the Temporal UI; at most 500 characters. @default "asked for by hand" */
  reason?: string;
}

/** Result of the `deregistration` workflow. */
export interface DeregistrationResult {
  /**
   * `removed`: this workflow removed the registration. `absent`: it did not exist anymore.
   * `dangling`: it could not be removed within `timeout`.
   */
  outcome: 'removed' | 'absent' | 'dangling';
  /** Number of attempts. Absent if `dangling`. */
  attempts?: number;
  /** Result in one sentence. */
  message: string;
}
