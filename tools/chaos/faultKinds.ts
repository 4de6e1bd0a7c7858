import type { WaitCause } from '../../core/contract/index.ts';

/**
 * All kinds of faults of a chaos run: how often each occurs, how long it lasts, and which other
 * faults it excludes.
 */

/** Part of the environment that a fault uses alone. Two faults with a common one never overlap. */
export type Resource =
  | 'workers'
  | 'temporal'
  | 'cluster'
  | 'answers'
  | 'pods'
  | 'limits'
  | 'credential'
  | 'lists'
  | 'removals'
  | 'webhooks';

/** Cause that `holdfast why` names, or `unreachable` if it cannot connect to Temporal. */
export type ExpectedCause = WaitCause | 'unreachable';

/** Properties of a kind of fault. */
export interface FaultKindInfo {
  /** Number of occurrences in each round of a schedule. 0: only with `--why`. */
  readonly perRound: number;
  /** Minimum and maximum duration (ms). */
  readonly lastsMs: readonly [number, number];
  readonly resources: readonly Resource[];
  /** Kind of nodes that it needs. @default both kinds */
  readonly nodes?: 'kwok' | 'kubelet';
  /** Causes that `holdfast why` may name during the fault. Absent if no job waits because of it. */
  readonly expectedCauses?: readonly ExpectedCause[];
}

const NO_WORKER = ['no_worker', 'no_answer'] as const;

const AT_ONCE = [0, 0] as const;
/** Duration after which jobs have waited for more than 30 s (ms). */
export const LONG = [55_000, 65_000] as const;

export const FAULT_KINDS = {
  /** SIGKILL. Another worker replaces it afterwards. */
  worker_killed: { perRound: 3, lastsMs: [500, 10_000], resources: ['workers'] },
  /** SIGTERM. */
  worker_terminated: { perRound: 2, lastsMs: [500, 10_000], resources: ['workers'] },
  /** SIGSTOP, then SIGCONT: the worker continues its tasks. */
  worker_stopped: { perRound: 2, lastsMs: [2_000, 20_000], resources: ['workers'] },
  workers_killed: {
    perRound: 2,
    lastsMs: [500, 10_000],
    resources: ['workers'],
    expectedCauses: NO_WORKER,
  },
  workers_stopped: {
    perRound: 1,
    lastsMs: [2_000, 20_000],
    resources: ['workers'],
    expectedCauses: NO_WORKER,
  },
  /** The clock of a worker is wrong by up to ten minutes, and is then corrected. */
  clock_stepped: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['workers'] },

  temporal_killed: {
    perRound: 1,
    lastsMs: [500, 6_000],
    resources: ['temporal'],
    expectedCauses: ['unreachable'],
  },
  temporal_terminated: { perRound: 1, lastsMs: [500, 6_000], resources: ['temporal'] },
  api_server_killed: { perRound: 1, lastsMs: [500, 8_000], resources: ['cluster'] },
  api_server_terminated: { perRound: 1, lastsMs: [500, 8_000], resources: ['cluster'] },
  /** Temporal and the API server. */
  servers_killed: { perRound: 1, lastsMs: [500, 6_000], resources: ['temporal', 'cluster'] },
  /** SIGSTOP: the API server does not respond, or responds with errors. */
  etcd_stopped: { perRound: 1, lastsMs: [2_000, 12_000], resources: ['cluster'] },
  /** Every watch of the workers is cut. */
  watch_cut: { perRound: 2, lastsMs: AT_ONCE, resources: ['answers'] },
  /** Every connection of the workers to the API server is cut. */
  connections_cut: { perRound: 1, lastsMs: AT_ONCE, resources: ['answers'] },
  /** Watches stay open without events, as on a half-open connection, until they are cut. */
  watch_silent: { perRound: 2, lastsMs: [3_000, 25_000], resources: ['answers'] },
  /** Requests of workers to create an object are responded to late. */
  creation_answered_late: { perRound: 1, lastsMs: [3_000, 12_000], resources: ['answers'] },
  /** Requests of workers to create an object arrive late. */
  creation_arrives_late: { perRound: 1, lastsMs: [3_000, 12_000], resources: ['answers'] },
  /** An admission policy denies the deletion of pods. */
  deletion_denied: { perRound: 1, lastsMs: [3_000, 12_000], resources: ['cluster'] },

  /** Workers do not reach the API server. */
  api_server_unreachable: {
    perRound: 0,
    lastsMs: LONG,
    resources: ['answers'],
    expectedCauses: ['cluster_unreachable'],
  },
  /** The quota of the namespace does not allow another pod. */
  quota_used_up: { perRound: 0, lastsMs: LONG, resources: ['cluster'], expectedCauses: ['quota'] },
  /** An admission policy denies new pods. */
  pods_denied: {
    perRound: 0,
    lastsMs: LONG,
    resources: ['cluster'],
    expectedCauses: ['pod_rejected', 'breaker'],
  },
  /** No node accepts another pod. */
  nodes_cordoned: {
    perRound: 0,
    lastsMs: LONG,
    resources: ['cluster'],
    nodes: 'kwok',
    expectedCauses: ['unschedulable'],
  },

  /** A user terminates the workflow of a runner, so that only the sweep removes what remains. */
  workflow_terminated: { perRound: 2, lastsMs: AT_ONCE, resources: ['pods'] },

  /** A user drains a runner, and its node is drained at the same time. */
  drained_and_evicted: { perRound: 3, lastsMs: AT_ONCE, resources: ['pods', 'temporal'] },
  /**
   * Another installation of the same name, with another Temporal namespace, runs a sweep with
   * `--force`.
   */
  foreign_sweep: { perRound: 1, lastsMs: AT_ONCE, resources: ['temporal', 'cluster'] },

  pod_evicted: { perRound: 3, lastsMs: AT_ONCE, resources: ['pods'] },
  pod_deleted: { perRound: 2, lastsMs: AT_ONCE, resources: ['pods'] },
  pod_force_deleted: { perRound: 3, lastsMs: AT_ONCE, resources: ['pods'] },
  /** A job uses more memory than the limit of its pod. */
  job_out_of_memory: { perRound: 2, lastsMs: AT_ONCE, resources: ['pods'], nodes: 'kubelet' },

  ci_stale_lists: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['lists'] },
  /** Responses show busy runners as idle, and online ones as offline. */
  ci_wrong_states: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['lists'] },
  /** GitHub responds with 204 to a DELETE of a busy runner, and its job continues. */
  ci_removes_busy: { perRound: 2, lastsMs: [3_000, 15_000], resources: ['removals'] },
  ci_slow: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['answers'] },
  ci_errors: { perRound: 1, lastsMs: [2_000, 12_000], resources: ['limits'] },
  ci_html: { perRound: 1, lastsMs: [2_000, 12_000], resources: ['limits'] },
  ci_drops_requests: { perRound: 1, lastsMs: [2_000, 12_000], resources: ['limits'] },
  /** The request takes effect, but its connection is cut before the response. */
  ci_drops_answers: { perRound: 2, lastsMs: [2_000, 12_000], resources: ['limits'] },
  ci_primary_limit: {
    perRound: 1,
    lastsMs: [1_000, 5_000],
    resources: ['limits'],
    expectedCauses: ['rate_limit'],
  },
  ci_secondary_limit: {
    perRound: 1,
    lastsMs: [1_000, 5_000],
    resources: ['limits'],
    expectedCauses: ['rate_limit'],
  },
  credential_rotated: { perRound: 1, lastsMs: [1_000, 5_000], resources: ['credential'] },
  credential_revoked: {
    perRound: 1,
    lastsMs: [2_000, 8_000],
    resources: ['credential'],
    expectedCauses: ['credential_rejected'],
  },
  /** The credential loses access to the organization: every response is 404. */
  scope_lost: {
    perRound: 1,
    lastsMs: [2_000, 8_000],
    resources: ['credential'],
    expectedCauses: ['credential_rejected'],
  },
  /** No request gets a response. */
  ci_unreachable: {
    perRound: 0,
    lastsMs: LONG,
    resources: ['limits'],
    expectedCauses: ['ci_server_unreachable'],
  },
  webhooks_lost: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['webhooks'] },
  webhooks_doubled: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['webhooks'] },
  webhooks_late: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['webhooks'] },
  webhooks_shuffled: { perRound: 1, lastsMs: [3_000, 15_000], resources: ['webhooks'] },
} as const satisfies Record<string, FaultKindInfo>;

/** Name of a kind of fault. */
export type FaultKind = keyof typeof FAULT_KINDS;

/** Returns the properties of a kind of fault. */
export const faultKindInfo = (kind: FaultKind): FaultKindInfo => FAULT_KINDS[kind];
