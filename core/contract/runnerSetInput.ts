/** Input of the `runnerSet` workflow. As in runnerInput.ts, each duration is written once: in its table. */
import type { Durations } from '../domain/duration.ts';
import type { RunnerInput } from './runnerInput.ts';

/** What a set waits for before it acts, with the defaults. `0s` is allowed. */
export const SET_DELAYS = {
  /** Since the last scale-up, before idle runners in excess are drained. @default "10m" */
  scaleDownDelay: '10m',
  /** How long the place of an ephemeral runner that ran a job no event told of stays empty, unless the CI server says sooner. @default "10m" */
  recreationGuard: '10m',
  /** How often queued jobs are looked for at the CI server, in case webhooks were lost; `0s` turns it off. @default "5m" */
  queueCheck: '5m',
} as const;

/** Pace of a set's re-checks, with the defaults that are right for production. */
export const SET_INTERVALS = {
  /** How often the runners are read again from Temporal's visibility. @default "5m" */
  relist: '5m',
  /** After runners that did not come up, before the next one is tried; doubles with each. @default "15s" */
  initialRetry: '15s',
  /** The longest of these waits. @default "10m" */
  maxRetry: '10m',
  /** Between two looks at queued jobs that an ended runner's place waits for. @default "30s" */
  guardCheck: '30s',
  /** Between two tries to pass on the jobs that the set cannot serve, while no other set has room for them. @default "15s" */
  reroute: '15s',
} as const;

export type SetIntervals = Durations<typeof SET_INTERVALS>;

/** How many runners: a fixed number, or as many as demand asks for between two bounds. Exactly one of the two forms. */
export interface SetScale {
  /** A fixed number of runners, whatever the demand. */
  replicas?: number;
  /** Idle runners kept ready, on top of those that jobs are assigned to or queued for. @default 0 */
  minIdle?: number;
  /** Runners at the most. Required with `minIdle`. */
  max?: number;
}

/** Another scale for a time; the first entry that holds now wins. */
export interface SetSchedule extends SetScale {
  /** When it begins: five cron fields, in which day of month and day of week are alternatives. */
  cron: string;
  /** IANA time zone. @default "UTC" */
  timeZone?: string;
  /** For how long, such as `10h`. */
  duration: string;
}

/** What a set serves at the most, beyond the number of its runners. Runners that run are left alone: no limit ends a job. */
export interface SetLimits {
  /** Jobs of one repository that the set has runners for at a time. @default no limit */
  perRepository?: number;
  /** The same for several repositories together; of a repository that several entries name the first counts. @default none */
  repositories?: RepositoryLimit[];
  /** Hours of all its runners together in a day (UTC), from a runner's start to its end. When they are used up, no runner is started until the next day. @default no limit */
  maxRunnerHours?: number;
}

export interface RepositoryLimit {
  /** `owner/repo`, as GitHub's filter patterns: `acme/*` is all of an organization. Upper and lower case are one. */
  repositories: string[];
  /** Jobs that the set has runners for at a time. */
  max: number;
}

/** Whose runners are registered first where a credential's pace is what they wait for. */
export const SET_PRIORITIES = ['high', 'normal', 'low'] as const;
export type SetPriority = (typeof SET_PRIORITIES)[number];

/** Input of the `runnerSet` workflow, and one document of `holdfast set apply`. */
export interface RunnerSetInput extends SetScale, Durations<typeof SET_DELAYS> {
  name: string;
  /** What each runner is started with. `name` and `set` are the set's to give. */
  template: Omit<RunnerInput, 'name' | 'set'>;
  /**
   * Replace-ahead: a busy runner's successor is started when its job starts, and not when it ends; so many at a time. They come on top of `replicas`; with
   * `minIdle` and `max` they count as idle ones that are kept, and `max` holds. For ephemeral runners without volumes of slots. @default 0
   */
  replaceAhead?: number;
  /**
   * Whether jobs without labels (`runs-on: {group: NAME}`) are for this set, too. GitHub does not tell which group a queued job asks for, and jobs for
   * its own larger runners look the same: set it only where the repositories of the scope use no other group. @default false
   */
  groupJobs?: boolean;
  schedules?: SetSchedule[];
  /** @default none */
  limits?: SetLimits;
  /** @default "normal" */
  priority?: SetPriority;
  rollout?: {
    /** Runners of a new template beyond the number wanted, while the old ones leave. @default 1 */
    maxSurge?: number;
  };
  /** Runners, by name or workflow id, that no scale-down and no rollout touches. Absent in an `apply`: as they are. */
  holds?: string[];
  /** No runner is started while paused; those that run go on. Absent in an `apply`: as it is. */
  paused?: boolean;
  /** Pace of re-checks; the defaults are right for production. */
  intervals?: SetIntervals;
}
