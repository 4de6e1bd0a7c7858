/** Starts the workflow of a set, and formats its size. */
import {
  RUNNER_SET_WORKFLOW,
  type RunnerSetInput,
  type SetScale,
} from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { setStartOptions } from '../../worker/temporal/setStart.ts';
import type { Session } from '../shared/session.ts';

/**
 * Starts the workflow of a set.
 * @returns the run ID
 * @throws the error of the client, such as `WorkflowExecutionAlreadyStartedError`
 */
export async function startSet(
  session: Session,
  input: RunnerSetInput,
  spec: SetSpec,
): Promise<string> {
  const handle = await session.attempt((client) =>
    client.workflow.start(
      RUNNER_SET_WORKFLOW,
      setStartOptions(input, spec, session.settings.taskQueue),
    ),
  );
  return handle.firstExecutionRunId;
}

/** Returns the size as text: `3 runners`, or `2 idle, at most 20`. */
export function sizeText({ replicas, minIdle = 0, max }: SetScale): string {
  return replicas === undefined ? `${minIdle} idle, at most ${max}` : countText(replicas);
}

/** Returns a number of runners as text: `1 runner`, `3 runners`. */
export const countText = (count: number): string => `${count} runner${count === 1 ? '' : 's'}`;
