/**
 * Decides the next action for one RunnerSet resource, from its state and that of its set. Pure;
 * docs/runner-sets.md lists the reasons.
 */
import type { ReadyStatus } from './runnerSetResource.ts';

/** State of a set, as seen from one resource. */
export type SetFacts =
  | { readonly state: 'absent' }
  | {
      readonly state: 'ended';
      /** Whether this resource created the set. */
      readonly owned: boolean;
      readonly message: string;
      readonly failed: boolean;
      /** Time since its end (ms). */
      readonly ageMs: number;
    }
  | {
      readonly state: 'running';
      /**
       * Creator of the set: this resource (`this`), a deleted resource with the same name and
       * namespace (`earlier`), or another one (`other`).
       */
      readonly owner: 'this' | 'earlier' | 'other';
      /** Task queue of the set, if it is not that of this worker. */
      readonly otherTaskQueue?: string;
      /** Cluster of its resource, if it is not that of this worker. */
      readonly otherCluster?: string;
      /** Pause of its workflow in Temporal, as text. */
      readonly paused?: string;
      /** Whether the set is draining its runners in order to end. */
      readonly deleting: boolean;
      /** Whether the set differs from the spec. `undefined` if no worker has answered. */
      readonly differs: boolean | undefined;
    };

/** State of one RunnerSet resource and its set. */
export interface ReconcileInput {
  /** State of the resource. `undefined` if it is deleted. */
  readonly resource:
    | {
        readonly name: string;
        /** Errors of its spec, if it is invalid. */
        readonly invalid?: string;
        /** Whether its status is for the current generation. */
        readonly observed: boolean;
        /**
         * Whether its status says that another party ended the set. Temporal forgets this after the
         * retention period.
         */
        readonly reportedEnded?: boolean;
      }
    | undefined;
  readonly set: SetFacts;
}

/** Next action, and the status of the resource during the action or while there is none. */
export interface Step {
  readonly action: 'start' | 'apply' | 'end' | 'none';
  readonly status: ReadyStatus;
}

/**
 * Time to wait before a failed set is started again (ms). The cause, such as an unknown credential,
 * may be fixed by then.
 */
export const FAILED_RETRY_MS = 300_000;

const step = (
  action: Step['action'],
  reason: string,
  message: string,
  { ready = false }: { readonly ready?: boolean } = {},
): Step => ({
  action,
  status: { ready, reason, message },
});

const ENDED = step(
  'none',
  'Ended',
  'the set was ended, and not by this resource: it stays so until the spec changes',
);

/** Returns the next action for one RunnerSet resource, and its status meanwhile. */
export function nextStep({ resource, set }: ReconcileInput): Step {
  if (resource === undefined) {
    const orphan = set.state === 'running' && set.owner !== 'other' && !set.deleting;
    return step(orphan ? 'end' : 'none', 'Deleted', 'the resource is deleted: its runners leave');
  }
  const { name, invalid, observed, reportedEnded } = resource;
  if (set.state === 'running' && set.owner === 'other')
    return step('none', 'NameTaken', nameTaken(name, set));
  if (set.state === 'running' && set.owner === 'earlier') {
    return step(
      set.deleting ? 'none' : 'end',
      'PreviousSetDraining',
      'the set of an earlier resource of this name has to end first: its jobs may finish',
    );
  }
  if (set.state === 'running' && set.deleting)
    return step('none', 'Ending', 'the set is ending: its runners drain');
  if (invalid !== undefined) return step('none', 'InvalidSpec', invalid);
  if (set.state === 'running') {
    if (set.paused !== undefined)
      return step(
        'none',
        'Paused',
        `the workflow of the set is paused ${set.paused}: it starts and drains nothing until it is unpaused`,
      );
    if (set.differs === undefined)
      return step('none', 'NoWorker', 'no worker has answered for the set yet');
    return set.differs
      ? step('apply', 'Progressing', 'the change is being applied to the set')
      : step('none', 'Applied', 'the set matches the spec', { ready: true });
  }
  if (set.state === 'absent' && observed && reportedEnded === true) return ENDED;
  if (set.state === 'ended' && set.owned && observed) {
    if (set.failed && set.ageMs >= FAILED_RETRY_MS)
      return step(
        'start',
        'Starting',
        `the set is started again; it failed before: ${set.message}`,
      );
    if (set.failed)
      return step(
        'none',
        'Failed',
        `${set.message}; it is tried again every ${FAILED_RETRY_MS / 60_000} minutes, and as soon as the spec changes`,
      );
    return ENDED;
  }
  return step('start', 'Starting', 'the set is started');
}

function nameTaken(
  name: string,
  { otherTaskQueue, otherCluster }: Extract<SetFacts, { state: 'running' }>,
): string {
  if (otherTaskQueue !== undefined)
    return `a set ${name} exists on task queue ${otherTaskQueue}: give this one another name`;
  if (otherCluster !== undefined)
    return `a set ${name} exists that a RunnerSet of cluster ${otherCluster} created: give this one another name`;
  return `a set ${name} exists that no resource of this name created: drain that one first ("holdfast set delete ${name}"), or give this one another name`;
}
