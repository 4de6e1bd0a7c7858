import type { WaitCause } from '../../core/contract/index.ts';

/** Every way in which the world may go wrong under a chaos run: how often, for how long, and what may not go wrong at the same time. */

/** What a fault has for itself while it lasts: two that hold the same never overlap. */
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

/** What `holdfast why` names: a cause, or that Temporal is not reached. */
export type Named = WaitCause | 'unreachable';

export interface FaultKindInfo {
  /** Cards in the deck from which a schedule is dealt; 0: it belongs to `--why` alone. */
  readonly cards: number;
  /** From the least to the most, in ms. */
  readonly lastsMs: readonly [number, number];
  readonly holds: readonly Resource[];
  /** On these nodes only. @default both */
  readonly nodes?: 'kwok' | 'kubelet';
  /** Keeps jobs waiting while it lasts, and what `holdfast why` names then. */
  readonly named?: readonly Named[];
}

const NO_WORKER = ['no_worker', 'no_answer'] as const;

const AT_ONCE = [0, 0] as const;
/** Long enough for jobs to wait for more than 30 s. */
export const LONG = [55_000, 65_000] as const;

export const FAULT_KINDS = {
  /** SIGKILL, and another worker in its place afterwards. */
  worker_killed: { cards: 3, lastsMs: [500, 10_000], holds: ['workers'] },
  /** SIGTERM. */
  worker_terminated: { cards: 2, lastsMs: [500, 10_000], holds: ['workers'] },
  /** SIGSTOP, then SIGCONT: it goes on with what it had in its hands. */
  worker_stopped: { cards: 2, lastsMs: [2_000, 20_000], holds: ['workers'] },
  workers_killed: { cards: 2, lastsMs: [500, 10_000], holds: ['workers'], named: NO_WORKER },
  workers_stopped: { cards: 1, lastsMs: [2_000, 20_000], holds: ['workers'], named: NO_WORKER },
  /** Its clock goes wrong by up to ten minutes, and comes back. */
  clock_stepped: { cards: 1, lastsMs: [3_000, 15_000], holds: ['workers'] },

  temporal_killed: { cards: 1, lastsMs: [500, 6_000], holds: ['temporal'], named: ['unreachable'] },
  temporal_terminated: { cards: 1, lastsMs: [500, 6_000], holds: ['temporal'] },
  api_server_killed: { cards: 1, lastsMs: [500, 8_000], holds: ['cluster'] },
  api_server_terminated: { cards: 1, lastsMs: [500, 8_000], holds: ['cluster'] },
  /** Temporal and the API server. */
  servers_killed: { cards: 1, lastsMs: [500, 6_000], holds: ['temporal', 'cluster'] },
  /** SIGSTOP: the API server answers nothing, or errors. */
  etcd_stopped: { cards: 1, lastsMs: [2_000, 12_000], holds: ['cluster'] },
  /** Every watch of the workers is cut. */
  watch_cut: { cards: 2, lastsMs: AT_ONCE, holds: ['answers'] },
  /** Every connection of the workers to the API server is cut. */
  connections_cut: { cards: 1, lastsMs: AT_ONCE, holds: ['answers'] },
  /** Watches stay open and tell nothing, as on a half-open connection, until they are cut. */
  watch_silent: { cards: 2, lastsMs: [3_000, 25_000], holds: ['answers'] },
  /** What workers create is created, and their answers come late. */
  creation_answered_late: { cards: 1, lastsMs: [3_000, 12_000], holds: ['answers'] },
  /** What workers create is created late. */
  creation_arrives_late: { cards: 1, lastsMs: [3_000, 12_000], holds: ['answers'] },
  /** An admission policy denies the deletion of pods. */
  deletion_denied: { cards: 1, lastsMs: [3_000, 12_000], holds: ['cluster'] },

  /** Workers do not reach the API server. */
  cluster_away: { cards: 0, lastsMs: LONG, holds: ['answers'], named: ['cluster_unreachable'] },
  /** The namespace's quota has room for no pod more. */
  quota_used_up: { cards: 0, lastsMs: LONG, holds: ['cluster'], named: ['quota'] },
  /** An admission policy denies new pods. */
  pods_denied: { cards: 0, lastsMs: LONG, holds: ['cluster'], named: ['pod_rejected', 'breaker'] },
  /** No node takes another pod. */
  nodes_cordoned: {
    cards: 0,
    lastsMs: LONG,
    holds: ['cluster'],
    nodes: 'kwok',
    named: ['unschedulable'],
  },

  /** Somebody terminates a runner's workflow, which leaves everything to the sweep. */
  life_terminated: { cards: 2, lastsMs: AT_ONCE, holds: ['pods'] },

  /** A user drains a runner, and its node is drained at the same time. */
  drained_and_evicted: { cards: 3, lastsMs: AT_ONCE, holds: ['pods', 'temporal'] },
  /** Another installation of the same name, whose workflows are in another Temporal namespace, sweeps by force. */
  foreign_sweep: { cards: 1, lastsMs: AT_ONCE, holds: ['temporal', 'cluster'] },

  pod_evicted: { cards: 3, lastsMs: AT_ONCE, holds: ['pods'] },
  pod_deleted: { cards: 2, lastsMs: AT_ONCE, holds: ['pods'] },
  pod_force_deleted: { cards: 3, lastsMs: AT_ONCE, holds: ['pods'] },
  /** A job takes more memory than its pod has. */
  job_out_of_memory: { cards: 2, lastsMs: AT_ONCE, holds: ['pods'], nodes: 'kubelet' },

  ci_stale_lists: { cards: 1, lastsMs: [3_000, 15_000], holds: ['lists'] },
  ci_busy_lies: { cards: 1, lastsMs: [3_000, 15_000], holds: ['lists'] },
  /** DELETE of a busy runner answers 204, and its job goes on. */
  ci_removes_busy: { cards: 2, lastsMs: [3_000, 15_000], holds: ['removals'] },
  ci_slow: { cards: 1, lastsMs: [3_000, 15_000], holds: ['answers'] },
  ci_errors: { cards: 1, lastsMs: [2_000, 12_000], holds: ['limits'] },
  ci_html: { cards: 1, lastsMs: [2_000, 12_000], holds: ['limits'] },
  ci_drops_requests: { cards: 1, lastsMs: [2_000, 12_000], holds: ['limits'] },
  /** The request takes effect, and its connection is cut. */
  ci_drops_answers: { cards: 2, lastsMs: [2_000, 12_000], holds: ['limits'] },
  ci_primary_limit: { cards: 1, lastsMs: [1_000, 5_000], holds: ['limits'], named: ['rate_limit'] },
  ci_secondary_limit: {
    cards: 1,
    lastsMs: [1_000, 5_000],
    holds: ['limits'],
    named: ['rate_limit'],
  },
  credential_rotated: { cards: 1, lastsMs: [1_000, 5_000], holds: ['credential'] },
  credential_revoked: {
    cards: 1,
    lastsMs: [2_000, 8_000],
    holds: ['credential'],
    named: ['credential_rejected'],
  },
  /** The credential loses sight of the organization: 404 to everything. */
  scope_lost: {
    cards: 1,
    lastsMs: [2_000, 8_000],
    holds: ['credential'],
    named: ['credential_rejected'],
  },
  /** No request is answered. */
  ci_away: { cards: 0, lastsMs: LONG, holds: ['limits'], named: ['ci_server_unreachable'] },
  webhooks_lost: { cards: 1, lastsMs: [3_000, 15_000], holds: ['webhooks'] },
  webhooks_doubled: { cards: 1, lastsMs: [3_000, 15_000], holds: ['webhooks'] },
  webhooks_late: { cards: 1, lastsMs: [3_000, 15_000], holds: ['webhooks'] },
  webhooks_shuffled: { cards: 1, lastsMs: [3_000, 15_000], holds: ['webhooks'] },
} as const satisfies Record<string, FaultKindInfo>;

export type FaultKind = keyof typeof FAULT_KINDS;

export const faultKindInfo = (kind: FaultKind): FaultKindInfo => FAULT_KINDS[kind];
