/**
 * Input of the `runnerSet` workflow. As in runnerInput.ts, each table of durations defines their
 * names, defaults and meaning.
 */
import type { Durations } from '../domain/duration.ts';
import type { RunnerInput } from './runnerInput.ts';

/** Delays before a set acts, with their defaults. `0s` is allowed. */
export const SET_DELAYS = {
  /**
   * Period of which the highest number of runners wanted limits scale-downs: excess idle runners
   * are drained down to that number.
   * @default "10m"
   */
  scaleDownDelay: '10m',
  /**
   * Time that a runner must be online before it counts as ready, unless it takes a job sooner. A
   * rollout drains old runners only as new ones become ready. A runner that ends earlier by itself
   * counts as failed, and delays further starts. The same as `minReadySeconds` in Kubernetes.
   * @default "10s"
   */
  minReady: '10s',
  /**
   * Time to wait before replacing an ephemeral runner whose job no event has reported, unless the
   * CI server reports the job sooner.
   * @default "10m"
   */
  recreationGuard: '10m',
  /**
   * Interval between checks of the CI server's job list, in case webhooks were lost. `0s` turns
   * them off.
   * @default "5m"
   */
  queueCheck: '5m',
} as const;

/** Pace of a set's re-checks. The defaults are right for production. */
export const SET_INTERVALS = {
  /** Interval between reads of the runners from Temporal's visibility. @default "5m" */
  relist: '5m',
  /**
   * Time to wait before the next start after runners failed to come online. It doubles with each
   * failure.
   * @default "15s"
   */
  initialRetry: '15s',
  /** Maximum of these waits. @default "10m" */
  maxRetry: '10m',
  /**
   * Interval between checks of the job list while the recreation guard holds back a runner.
   * @default "30s"
   */
  guardCheck: '30s',
  /**
   * Interval between attempts to reroute jobs that the set cannot serve, while no other set has
   * room for them.
   * @default "15s"
   */
  reroute: '15s',
} as const;

/** Intervals of a set as duration strings; see {@link SET_INTERVALS}. */
export type SetIntervals = Durations<typeof SET_INTERVALS>;

/**
 * Size of a set: a fixed number of runners (`replicas`), or a number that follows demand (`minIdle`
 * and `max`). Exactly one of the two forms must be used.
 */
export interface SetScale {
  /** Fixed number of runners, regardless of demand. */
  replicas?: number;
  /** Idle runners kept ready, in addition to those for queued and assigned jobs. @default 0 */
  minIdle?: number;
  /** Maximum number of runners. Required with `minIdle`. */
  max?: number;
}

/** Different size for a period of time. The first entry that is active applies. */
export interface SetSchedule extends SetScale {
  /**
   * Start of the period: five cron fields, in which day of month and day of week are alternatives.
   */
  cron: string;
  /** IANA time zone. @default "UTC" */
  timeZone?: string;
  /** Length of the period, such as `10h`. */
  duration: string;
}

/**
 * Limits of a set beyond its number of runners. They prevent new runners; no limit ends a running
 * job.
 */
export interface SetLimits {
  /**
   * Maximum number of jobs of one repository that have runners at the same time.
   * @default no limit
   */
  perRepository?: number;
  /**
   * Limits for groups of repositories. If several entries match a repository, the first one
   * applies.
   * @default none
   */
  repositories?: RepositoryLimit[];
  /**
   * Maximum runner hours of all runners together in one day (UTC), from a runner's start to its
   * end. Once they are used up, no runner is started until the next day.
   * @default no limit
   */
  maxRunnerHours?: number;
}

/** Limit for the jobs of several repositories together. */
export interface RepositoryLimit {
  /**
   * `owner/repo`, or patterns as in GitHub's filters: `acme/*` matches all repositories of an
   * organization. Case is ignored.
   */
  repositories: string[];
  /** Maximum number of jobs that have runners at the same time. */
  max: number;
}

/**
 * Priorities of sets that share a credential. Runners of a higher priority are registered first
 * when the credential's rate limit delays registrations.
 */
export const SET_PRIORITIES = ['high', 'normal', 'low'] as const;
/** Priority of a set among those with the same credential. */
export type SetPriority = (typeof SET_PRIORITIES)[number];

/** Sources of the number of runners that a set can have at a time. */
export const SET_CAPACITIES = ['static', 'observed'] as const;
/** Source of the number of runners that a set can have at a time. */
export type SetCapacity = (typeof SET_CAPACITIES)[number];

/** Input of the `runnerSet` workflow, and one document of `holdfast set apply`. */
export interface RunnerSetInput extends SetScale, Durations<typeof SET_DELAYS> {
  /** Name of the set. Its workflow id is `set-<name>`. */
  name: string;
  /** Input of each runner. The set itself adds `name` and `set`. */
  template: Omit<RunnerInput, 'name' | 'set'>;
  /**
   * Maximum number of successors that are started when a busy runner's job starts, instead of when
   * it ends. They are added to `replicas`; with `minIdle` and `max` they count as idle runners, and
   * `max` applies. Only for ephemeral runners without volume slots.
   * @default 0
   */
  replaceAhead?: number;
  /**
   * Whether the set also serves jobs without labels (`runs-on: {group: NAME}`). GitHub does not
   * report which group a queued job requests, and jobs for GitHub's larger runners look the same.
   * Set it only if the repositories of the scope use no other group.
   * @default false
   */
  groupJobs?: boolean;
  /**
   * Number of runners that the set can have at a time. `static`: `max`. `observed`: fewer while the
   * cluster has no node for their pods, or a ResourceQuota is used up. Only with `max`.
   * @default "static"
   */
  capacity?: SetCapacity;
  /** Sizes for periods of time. Outside of them the set's own size applies. */
  schedules?: SetSchedule[];
  /** Limits on jobs and runner hours. @default none */
  limits?: SetLimits;
  /** Priority among sets with the same credential. @default "normal" */
  priority?: SetPriority;
  rollout?: {
    /**
     * Maximum number of runners with a new template beyond the desired number while old ones drain.
     * @default 1
     */
    maxSurge?: number;
  };
  /**
   * Names or workflow ids of runners that are exempt from scale-downs and rollouts. If absent in an
   * `apply`, holds do not change.
   */
  holds?: string[];
  /**
   * Whether the set starts no runners. Running ones continue. If absent in an `apply`, the state
   * does not change.
   */
  paused?: boolean;
  /** Pace of re-checks. The defaults are right for production. */
  intervals?: SetIntervals;
}
