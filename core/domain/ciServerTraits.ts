/**
 * Differences between CI servers, as data. Decisions depend on these traits, never on the name of a
 * server. Pure.
 */

/** Capabilities of one CI server with one credential. Its adapter provides them. */
export interface CiServerTraits {
  /**
   * Whether the server refuses to remove a runner that is running a job. If not, the removal ends
   * the job.
   */
  readonly refusesBusyRemoval: boolean;
  /** Whether the server can stop assigning jobs to a runner that stays registered. */
  readonly canDisable: boolean;
  /**
   * Whether the server issues registrations for one runner and one job, whose ID is known
   * immediately.
   */
  readonly singleUseRegistration: boolean;
  /**
   * Whether the process of a runner continues when its registration is removed. The server then
   * accepts no result of a job from it.
   */
  readonly runnerOutlivesRegistration: boolean;
  /** Runner groups. Absent if the server has none. */
  readonly groups?: {
    /** ID of the group for runners without a group. */
    readonly defaultId: string;
  };
  /** Limits that the server sets for jobs. */
  readonly jobLimits: CiJobLimits;
}

/** Limits after which the server ends a job. Nothing more can be expected of an older job. */
export interface CiJobLimits {
  /** Maximum time that a job waits for a runner (ms). */
  readonly queuedMs: number;
  /** Maximum duration of a job (ms). */
  readonly runningMs: number;
}

/** Limits for jobs of a server without limits of its own. */
export const DEFAULT_JOB_LIMITS: CiJobLimits = {
  queuedMs: 24 * 3_600_000,
  runningMs: 5 * 24 * 3_600_000,
};

/**
 * Returns whether the removal of a running runner can end its job, because the server neither
 * refuses to remove a busy runner nor can disable it.
 */
export function removalEndsJob({
  refusesBusyRemoval,
  canDisable,
}: Pick<CiServerTraits, 'refusesBusyRemoval' | 'canDisable'>): boolean {
  return !refusesBusyRemoval && !canDisable;
}

/**
 * Returns the registration mode of a runner. Single-use registrations are for ephemeral runners
 * only.
 */
export function registrationModeFor(
  { singleUseRegistration }: Pick<CiServerTraits, 'singleUseRegistration'>,
  ephemeral: boolean,
): 'jit' | 'token' {
  return ephemeral && singleUseRegistration ? 'jit' : 'token';
}
