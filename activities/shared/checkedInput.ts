/**
 * Checks the input of every activity. Anyone who may start a workflow may start one of their own
 * that calls the activity, so its input is not trusted.
 */
import { FAILURE_TYPES, type HoldfastActivities } from '../../core/activities/index.ts';
import {
  activityInputErrors,
  isCheckedActivity,
  workflowIdsIn,
} from '../../core/input/activityInputs.ts';
import { callingWorkflowId } from './callingWorkflow.ts';
import { applicationFailure } from './failures.ts';
import { invalidInput } from './invalidInput.ts';

type Activity = (input: unknown) => Promise<unknown>;

/**
 * Returns the activities with a check of their inputs: each input must be well formed and concern
 * the runner of the calling workflow.
 */
export function checkInputs(activities: HoldfastActivities): HoldfastActivities {
  return Object.fromEntries(
    Object.entries(activities).map(([name, activity]) => [
      name,
      isCheckedActivity(name) ? checked(name, activity as Activity) : activity,
    ]),
  ) as unknown as HoldfastActivities;
}

function checked(name: Parameters<typeof activityInputErrors>[0], activity: Activity): Activity {
  return async (input) => {
    const errors = activityInputErrors(name, input);
    if (errors.length > 0) throw invalidInput(errors);
    for (const [field, workflowId] of workflowIdsIn(name, input)) requireCaller(field, workflowId);
    return await activity(input);
  };
}

/**
 * Rejects a call for the objects of a runner, or in its name, by any workflow other than its own.
 */
function requireCaller(field: string, workflowId: string): void {
  const caller = callingWorkflowId();
  if (workflowId === caller) return;
  throw applicationFailure(
    `${field}: "${workflowId}" must be the calling workflow ("${caller}"), which owns the runner`,
    FAILURE_TYPES.foreignObject,
    { final: true },
  );
}
