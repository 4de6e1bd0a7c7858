/** What is to be done for one RunnerSet resource, by what is known of it and of its set. Pure; docs/runner-sets.md has the table. */
import type { ReadyStatus } from './runnerSetResource.ts';

/** A set, from the view of one resource. */
export type SetFacts =
  | { readonly state: 'absent' }
  | {
      readonly state: 'ended';
      /** It was this resource's. */
      readonly owned: boolean;
      readonly message: string;
      readonly failed: boolean;
      /** How long ago, in ms. */
      readonly ageMs: number;
    }
  | {
      readonly state: 'running';
      /** Whose it is: this resource's; one's of the same name in the same namespace that was deleted; or somebody else's. */
      readonly owner: 'this' | 'earlier' | 'other';
      /** The task queue that it runs on, where that is not ours. */
      readonly otherTaskQueue?: string;
      /** It drains its runners, and ends. */
      readonly deleting: boolean;
      /** Does it differ from the spec? `undefined`: no worker has answered. */
      readonly differs: boolean | undefined;
    };

export interface ReconcileInput {
  /** `undefined`: there is no such resource any more. */
  readonly resource:
    | {
        readonly name: string;
        /** What is wrong with its spec. */
        readonly invalid?: string;
        /** Its status is about this generation. */
        readonly observed: boolean;
        /** Its status says that somebody has ended the set: Temporal forgets that after its retention. */
        readonly reportedEnded?: boolean;
      }
    | undefined;
  readonly set: SetFacts;
}

/** With what the resource says while the step is under way, or for as long as there is nothing to do. */
export interface Step {
  readonly action: 'start' | 'apply' | 'end' | 'none';
  readonly status: ReadyStatus;
}

/** A set that failed, as one does whose credential the workers do not know, is started again after this, in ms: the cause may have gone. */
export const FAILED_RETRY_MS = 300_000;

const step = (what: Step['action'], ready: boolean, reason: string, message: string): Step => ({
  action: what,
  status: { ready, reason, message },
});

const ENDED = step(
  'none',
  false,
  'Ended',
  'the set was ended, and not by this resource: it stays so until the spec changes',
);

export function nextStep({ resource, set }: ReconcileInput): Step {
  if (resource === undefined) {
    const orphan = set.state === 'running' && set.owner !== 'other' && !set.deleting;
    return step(
      orphan ? 'end' : 'none',
      false,
      'Deleted',
      'the resource is deleted: its runners leave',
    );
  }
  const { name, invalid, observed, reportedEnded } = resource;
  if (set.state === 'running' && set.owner === 'other') {
    const whose =
      set.otherTaskQueue === undefined
        ? `drain that one first ("holdfast set delete ${name}")`
        : `it runs on task queue ${set.otherTaskQueue}`;
    return step(
      'none',
      false,
      'NameTaken',
      `a set ${name} is there that no resource of this name has made: ${whose}, or give this one another name`,
    );
  }
  if (set.state === 'running' && set.owner === 'earlier') {
    return step(
      set.deleting ? 'none' : 'end',
      false,
      'PreviousSetDraining',
      'the set of an earlier resource of this name has to end first: its jobs may finish',
    );
  }
  if (set.state === 'running' && set.deleting)
    return step('none', false, 'Ending', 'the set was told to end: its runners leave');
  if (invalid !== undefined) return step('none', false, 'InvalidSpec', invalid);
  if (set.state === 'running') {
    if (set.differs === undefined)
      return step('none', false, 'NoWorker', 'no worker has answered for the set yet');
    return set.differs
      ? step('apply', false, 'Progressing', 'the set is told what has changed')
      : step('none', true, 'Applied', 'the set is what the spec says');
  }
  if (set.state === 'absent' && observed && reportedEnded === true) return ENDED;
  if (set.state === 'ended' && set.owned && observed) {
    if (set.failed && set.ageMs >= FAILED_RETRY_MS)
      return step(
        'start',
        false,
        'Starting',
        `the set is started again; it failed before: ${set.message}`,
      );
    if (set.failed)
      return step(
        'none',
        false,
        'Failed',
        `${set.message}; it is tried again every ${FAILED_RETRY_MS / 60_000} minutes, and as soon as the spec changes`,
      );
    return ENDED;
  }
  return step('start', false, 'Starting', 'the set is started');
}
