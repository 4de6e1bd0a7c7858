/** The watcher of the worker, which signals changes of the pod to the workflow. */
import { podStateChange } from '../../activities/watcher/podStateNotifier.ts';
import { clockOf } from './podViews.ts';
import { isCommand, lacksSupervisor, type State } from './state.ts';
import type { WorkflowModel } from './workflowModel.ts';

/**
 * Lets the watcher see the published probes, and send a signal if they changed. It sends the next
 * one only after this one has arrived. The delay of a signal, and outdated content, are covered by
 * the time of its arrival.
 */
export function notifyWorkflow(s: State, workflow: WorkflowModel): State {
  if (
    s.pod !== 'running' ||
    s.signal !== 'none' ||
    s.watcherView === s.published ||
    lacksSupervisor(s) ||
    isCommand(s)
  )
    return s;
  const pod = workflow.viewAt(workflow.view(s, 'warm'));
  const known =
    s.watcherView === 'nothing'
      ? undefined
      : workflow.viewAt(workflow.view({ ...s, published: s.watcherView }, 'warm'));
  const change = podStateChange(pod, known, clockOf(s));
  // A runner for one job stays busy for its watcher once it was busy.
  const busyOrReady = pod.busy === false ? 'ready' : 'busy';
  const watcherView = pod.online === true ? busyOrReady : 'down';
  return { ...s, watcherView, ...(change === undefined ? {} : { signal: change }) };
}
