import { diffSets } from '../../core/domain/setDiff.ts';
import { pauseText } from '../temporal/pauseInfo.ts';
import type { SetFacts } from './nextStep.ts';
import { inputOf, type RunnerSetResource } from './runnerSetResource.ts';
import { isResourceIn, type FoundSet, type ResourceNamespace } from './setWorkflows.ts';

/** Resources and sets of a controller. Another cluster may use the same task queue. */
export interface ControllerPlace extends ResourceNamespace {
  readonly taskQueue: string;
}

/**
 * Returns the state of a set, as seen from a resource. Pure.
 * @param resource - `undefined` if it is deleted
 */
export function setFacts(
  found: FoundSet,
  resource: RunnerSetResource | undefined,
  place: ControllerPlace,
): SetFacts {
  if (found.state === 'absent') return found;
  const owned = found.resource?.uid === resource?.metadata.uid && resource !== undefined;
  if (found.state === 'ended')
    return {
      state: 'ended',
      owned,
      message: found.message,
      failed: found.failed,
      ageMs: Date.now() - found.closedAt,
    };
  const { resource: creator, declaration: answer, paused, taskQueue } = found;
  const sameOrigin =
    creator !== undefined && isResourceIn(creator, place) && taskQueue === place.taskQueue;
  const formerOwner = sameOrigin ? 'earlier' : 'other';
  return {
    state: 'running',
    owner: owned ? 'this' : formerOwner,
    ...(taskQueue === place.taskQueue ? {} : { otherTaskQueue: taskQueue }),
    ...(creator?.cluster === undefined || creator.cluster === place.cluster
      ? {}
      : { otherCluster: creator.cluster }),
    ...(paused === undefined ? {} : { paused: pauseText(paused) }),
    deleting: answer?.status.deleting !== undefined,
    differs:
      answer === undefined || resource === undefined
        ? undefined
        : diffSets(answer.declaration, inputOf(resource)).length > 0,
  };
}
