/** Reads the facts of a set: its workflow, its starting runners and the listener of its scale set. */
import pMap from 'p-map';
import { SetNotAdmittedError } from '../../activities/runnerSet/querySetStatus.ts';
import { scaleSetListenerWorkflowId, type RunnerSetStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen, isPaused } from '../../core/domain/workflowStatus.ts';
import type { PendingFact, RunnerFacts, SetFacts } from '../../core/why/facts.ts';
import { resourceOf } from '../../worker/controller/setWorkflows.ts';
import { nameOf, querySetState } from '../set/setClient.ts';
import { getSetEnd } from '../set/setEnd.ts';
import { describeResource } from '../shared/resource.ts';
import { SET } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { readRunner } from './readRunner.ts';
import { unlessMissing } from './unlessMissing.ts';
import { isUnpolled, workflowFacts } from './workflowFacts.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Maximum number of starting runners that are read. Most others wait for the same. */
const MAX_STARTING = 3;

/**
 * Reads the facts of a set.
 * @throws CliError `not_found`, `unreachable`
 */
export async function readSet(session: Session, env: Env, nameOrId: string): Promise<SetFacts> {
  const description = await describeResource(session, SET, nameOrId);
  const { workflowId, runId, status: state } = description;
  const name = nameOf(workflowId);
  const base = {
    ...(await workflowFacts(session, description)),
    ...omitUndefined({ resource: resourceOf(description.memo) }),
    name,
    listener: [],
    starting: [],
  };
  if (!isOpen(state)) {
    const end = await getSetEnd(session, workflowId, runId);
    return { ...base, ...omitUndefined({ end }) };
  }
  // A workflow that is paused or has no worker answers no query.
  if (isPaused(state) || isUnpolled(base, description)) return base;
  const status = await querySetState(session, workflowId, {});
  if (status === undefined) return base;
  if (status instanceof SetNotAdmittedError) return { ...base, notAdmitted: status.message };
  return {
    ...base,
    status,
    listener: status.scaleSet === undefined ? [] : await readListener(session, name),
    starting: await readStarting(session, env, status),
  };
}

async function readStarting(
  session: Session,
  env: Env,
  { runners }: RunnerSetStatus,
): Promise<RunnerFacts[]> {
  const starting = runners
    .filter(({ state }) => state === 'starting')
    .toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt))
    .slice(0, MAX_STARTING);
  const read = await pMap(
    starting,
    async ({ workflowId }) => await unlessMissing(readRunner(session, env, workflowId)),
  );
  // A runner that has ended since the set listed it explains nothing.
  return read.filter((each) => each !== undefined).filter(({ end }) => end === undefined);
}

async function readListener(session: Session, set: string): Promise<readonly PendingFact[]> {
  const workflowId = scaleSetListenerWorkflowId(set);
  const description = await unlessMissing(
    session.call((client) => client.workflow.getHandle(workflowId).describe(), { workflowId }),
  );
  return description === undefined ? [] : (await workflowFacts(session, description)).pending;
}
