/** How CI servers differ, as data: decisions read these traits, never the name of a server. Pure. */

/** What one CI server does, seen with one credential. Its adapter states it. */
export interface CiServerTraits {
  /** Whether the server refuses to remove a runner that runs a job. If not, the removal ends the job. */
  readonly refusesBusyRemoval: boolean;
  /** Whether the server can stop giving jobs to a runner that stays registered. */
  readonly canDisable: boolean;
  /** Whether the server issues registrations for one runner and one job, whose ID is known at once. */
  readonly singleUseRegistration: boolean;
  /** Groups that runners belong to. Absent: the server has none. */
  readonly groups?: {
    /** ID of the group of runners that name none. */
    readonly defaultId: string;
  };
  /** Limits that the server sets for jobs. */
  readonly jobLimits: CiJobLimits;
}

/** How long the server keeps a job that is not over. Nothing more can be expected of an older one. */
export interface CiJobLimits {
  /** Longest time that a job waits for a runner (ms). */
  readonly queuedMs: number;
  /** Longest time that a job runs (ms). */
  readonly runningMs: number;
}

/** Limits for jobs of a server that states none. */
export const DEFAULT_JOB_LIMITS: CiJobLimits = {
  queuedMs: 24 * 3_600_000,
  runningMs: 5 * 24 * 3_600_000,
};

/** Whether the removal of a living runner can end its job: nothing keeps the server from removing a busy one. */
export function removalEndsJob({
  refusesBusyRemoval,
  canDisable,
}: Pick<CiServerTraits, 'refusesBusyRemoval' | 'canDisable'>): boolean {
  return !refusesBusyRemoval && !canDisable;
}

/** Returns how a runner registers. A single-use registration is for ephemeral runners only. */
export function registrationModeFor(
  { singleUseRegistration }: Pick<CiServerTraits, 'singleUseRegistration'>,
  ephemeral: boolean,
): 'jit' | 'token' {
  return ephemeral && singleUseRegistration ? 'jit' : 'token';
}
