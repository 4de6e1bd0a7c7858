/** Starts the workflow of a set, and says how large it is. */
import {
  RUNNER_SET_WORKFLOW,
  type RunnerSetInput,
  type SetScale,
} from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { setStartOptions } from '../../worker/temporal/setStart.ts';
import type { Session } from '../shared/session.ts';

/** @returns the id of its run @throws what the client throws: `WorkflowExecutionAlreadyStartedError` among others */
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

/** `3 runners`, `2 idle, 20 at the most` */
export function sizeText({ replicas, minIdle = 0, max }: SetScale): string {
  return replicas === undefined ? `${minIdle} idle, at most ${max}` : countText(replicas);
}

/** `1 runner`, `3 runners` */
export const countText = (count: number): string => `${count} runner${count === 1 ? '' : 's'}`;
