/** Queries the status of a set. */
import type { Client } from '@temporalio/client';
import {
  setStatusQuery,
  type RunnerSetStatus,
  type SetAwaitingAdmission,
  type SetRunnerStatus,
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
 * Returns the status of a set with all of its runners, oldest first. A runner that starts or ends
 * meanwhile may be missing.
 * @throws as {@link querySetStatus}
 */
export async function queryWholeSetStatus(
  client: Pick<Client, 'workflow'>,
  workflowId: string,
): Promise<RunnerSetStatus> {
  const first = await querySetStatus(client, workflowId);
  const runners = [...first.runners];
  for (let { moreAfter } = first; moreAfter !== undefined;) {
    const more = await querySetStatus(client, workflowId, { after: moreAfter });
    runners.push(...more.runners);
    ({ moreAfter } = more);
  }
  const { moreAfter: _all, ...status } = first;
  const age = ({ startedAt }: SetRunnerStatus): number => Date.parse(startedAt);
  return { ...status, runners: runners.toSorted((a, b) => age(a) - age(b)) };
}
