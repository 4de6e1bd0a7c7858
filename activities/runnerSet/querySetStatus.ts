/** Queries the status of a set. */
import type { Client } from '@temporalio/client';
import {
  setStatusQuery,
  type RunnerSetStatus,
  type SetAwaitingAdmission,
  type SetStatusRequest,
} from '../../core/contract/index.ts';

/** Error of a query to a set that no worker has admitted yet. */
export class SetNotAdmittedError extends Error {
  override readonly name = 'SetNotAdmittedError';

  constructor({ name, awaitingAdmission }: SetAwaitingAdmission) {
    super(`set ${name}: ${awaitingAdmission}`);
  }
}

/**
 * Returns the status of a set, with the runners that the request selects.
 * @throws SetNotAdmittedError if the set has no status yet
 * @throws the error of the Temporal client if no worker answers
 */
export async function querySetStatus(
  { workflow }: Pick<Client, 'workflow'>,
  workflowId: string,
  request: SetStatusRequest = {},
): Promise<RunnerSetStatus> {
  const status = await workflow.getHandle(workflowId).query(setStatusQuery, request);
  if ('awaitingAdmission' in status) throw new SetNotAdmittedError(status);
  return status;
}

/**
 * Returns the status of a set with all of its runners. A runner that ends meanwhile may be missing,
 * or another one in its place.
 * @throws as {@link querySetStatus}
 */
export async function queryWholeSetStatus(
  client: Pick<Client, 'workflow'>,
  workflowId: string,
): Promise<RunnerSetStatus> {
  const first = await querySetStatus(client, workflowId);
  const runners = new Map(first.runners.map((runner) => [runner.workflowId, runner]));
  for (let { moreFrom } = first; moreFrom !== undefined;) {
    const more = await querySetStatus(client, workflowId, { from: moreFrom });
    for (const runner of more.runners) runners.set(runner.workflowId, runner);
    ({ moreFrom } = more);
  }
  const { moreFrom: _all, ...status } = first;
  return { ...status, runners: [...runners.values()] };
}
