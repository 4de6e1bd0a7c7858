import type { ActivityTask } from '../watcher/deferredCompletions.ts';
import type { PodStateEvent } from '../../core/contract/index.ts';
import type { ServedLocation } from '../../core/domain/location.ts';
import type { PodView } from '../../core/domain/pod.ts';

/**
 * Completes activities that wait without a task slot, and finds those that a stopped worker left
 * pending.
 */
export interface WaitCompleter {
  /**
   * Completes the pending activity.
   * @returns `false` if no activity is pending under this ID
   */
  complete(workflowId: string, activityId: string, result: PodView): Promise<boolean>;
  /**
   * Completes the activity of this task.
   * @returns `false` if the activity is no longer pending
   */
  completeDeferred(task: ActivityTask, result: unknown): Promise<boolean>;
  /**
   * Signals a pod state to the runner's workflow as a hint. A workflow that has ended is ignored.
   * @param changeId - deduplicates signals of the same change from several senders. @default
   * signals are not deduplicated
   */
  signalPodState(workflowId: string, state: PodStateEvent, changeId?: string): Promise<void>;
  /**
   * Retries the pending activity immediately, so that it reads the live state itself. An activity
   * that is no longer pending is ignored.
   */
  requestRecheck(workflowId: string, activityId: string, reason: string): Promise<void>;
  /**
   * Lists the pending waits of running runner workflows at this location, without the workflows in
   * `except`.
   */
  pendingWaits(
    place: ServedLocation,
    except: ReadonlySet<string>,
  ): AsyncIterable<{ workflowId: string; activityId: string }>;
}
