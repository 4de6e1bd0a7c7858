import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { randomSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import type { HoldfastActivities, StartRunnersInput } from '../../core/activities/index.ts';
import { localStartRunners, temporalActivities, toCallResult } from '../shared/activityProxies.ts';
import { mayNotifyEndEarly, mayNotifyEndLate, needsBusyEvents } from './decide.ts';
import type { SetState } from './state.ts';

/** Maximum number of runners started in a workflow task: queries of the set wait meanwhile. */
const LOCAL_BATCH = 5;

/**
 * Starts runners. They are added to the state before they are started, so that an end that is
 * reported immediately finds them.
 */
export function startRunners(
  state: SetState,
  count: number,
  now: number,
): ReturnType<HoldfastActivities['startRunners']> {
  const { name, templateHash, ephemeral, template, slots, priority } = state.facts.spec;
  const free = slots ? state.runners.freeSlots(count) : [];
  const traces = state.jobs.traces.take(count);
  const runners = Array.from({ length: count }, (_none, index) => {
    const [slot, trace] = [free[index], traces[index]];
    return {
      workflowId: runnerWorkflowId(name, randomSuffix(Math.random)),
      ...omitUndefined({ slot, traceparent: trace }),
    };
  });
  state.onRunnersStarting(runners, now);
  const input = {
    set: name,
    templateHash,
    ephemeral,
    template,
    notifyBusy: needsBusyEvents(state, now),
    notifyEndEarly: mayNotifyEndEarly(state),
    endMayWait: mayNotifyEndLate(state),
    priority,
    runners,
  };
  return startAll(state, input);
}

/**
 * A few runners are started in this worker, as part of the workflow task: that saves a task for
 * most jobs. If the worker dies meanwhile, the next one starts the same workflow IDs. Not if they
 * have slots, which the next one may assign to other runners.
 */
async function startAll(
  state: SetState,
  input: StartRunnersInput,
): ReturnType<HoldfastActivities['startRunners']> {
  const { length } = input.runners;
  if (length <= LOCAL_BATCH && !state.facts.spec.slots) {
    const called = await toCallResult(localStartRunners(input));
    if (called.kind === 'done') return called.value;
  }
  return await temporalActivities(`Start ${length} runners`).startRunners(input);
}
