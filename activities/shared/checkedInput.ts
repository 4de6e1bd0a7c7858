/** What every activity does first: its input is a workflow's word, and whoever may start a workflow may have one of their own call it. */
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

/** Returns the activities, each with its input checked: it is well formed, and about the runner of the workflow that asks. */
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

/** What is done to a runner's objects, or said in its name, only its own workflow may ask for. */
function requireCaller(field: string, workflowId: string): void {
  const caller = callingWorkflowId();
  if (workflowId === caller) return;
  throw applicationFailure(
    `${field}: "${workflowId}" must be the workflow that asks ("${caller}"), whose runner this is about`,
    FAILURE_TYPES.foreignObject,
    { final: true },
  );
}
