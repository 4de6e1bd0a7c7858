/** How the commands find declared jobs, and tell and ask them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import {
  JOB_DEFINITION_WORKFLOW,
  jobDefinitionStatusQuery,
  readJobDefinitionId,
  type JobDefinitionStatus,
} from '../../core/contract/index.ts';
import { quoted } from '../../core/domain/visibility.ts';
import { QUERY_TIMEOUT_MS } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { toCliError } from '../shared/temporalErrors.ts';
import { CliError } from '../shared/exit.ts';

/** How long a worker is given to take a signal in, in ms: an activity or two. */
const HEARD_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 200;

/** One that runs. @throws CliError `not_found`, `conflict`, `unreachable` */
export async function runningDefinition(
  session: Session,
  nameOrId: string,
): Promise<WorkflowExecutionDescription> {
  const found = await describeDefinition(session, nameOrId);
  if (found.status.name !== 'RUNNING')
    throw new CliError(
      'not_found',
      `declared job ${nameOrId} has ended already: see it with "holdfast job definition ${nameOrId}"`,
    );
  return found;
}

/** A declared job by its name, as `owner/repo:name`, or by its workflow's id. @throws CliError `not_found`, `conflict` when several repositories have one of that name, `unreachable` */
export async function describeDefinition(
  session: Session,
  nameOrId: string,
): Promise<WorkflowExecutionDescription> {
  const workflowId = nameOrId.includes(':') ? idOf(nameOrId) : await idByName(session, nameOrId);
  const found =
    workflowId === undefined ? undefined : await describeDefinitionById(session, workflowId);
  if (found === undefined)
    throw new CliError(
      'not_found',
      `no declared job ${nameOrId} in namespace ${session.settings.namespace}: see "holdfast job definitions"`,
    );
  return found;
}

const idOf = (text: string): string => {
  const [, repository = '', name = ''] = /^(?:job-definition:)?([^:]+):(.+)$/.exec(text) ?? [];
  return `job-definition:${repository.toLowerCase()}:${name}`;
};

async function idByName(session: Session, name: string): Promise<string | undefined> {
  const ids = (await listDefinitionIds(session, 10_000)).filter(
    (id) => readJobDefinitionId(id)?.name === name,
  );
  if (ids.length > 1)
    throw new CliError(
      'conflict',
      `${ids.length} repositories have a declared job ${name}: name one of ${ids.map((id) => id.replace('job-definition:', '')).join(', ')}`,
    );
  return ids[0];
}

/** Workflow ids of those that run. @throws CliError */
export async function listDefinitionIds(session: Session, most: number): Promise<string[]> {
  const query = `WorkflowType = ${quoted(JOB_DEFINITION_WORKFLOW)} AND ExecutionStatus = 'Running'`;
  return await session.call(
    async (client) => {
      const ids: string[] = [];
      for await (const { workflowId } of client.workflow.list({
        query,
        pageSize: Math.min(most, 1_000),
      }))
        if (ids.push(workflowId) === most) break;
      return ids;
    },
    { timeoutMs: 60_000 },
  );
}

/** @returns `undefined` when there never was one @throws CliError `conflict` when the id is another's, `unreachable` */
export async function describeDefinitionById(
  session: Session,
  workflowId: string,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    const description = await session.attempt((client) =>
      client.workflow.getHandle(workflowId).describe(),
    );
    if (description.type !== JOB_DEFINITION_WORKFLOW)
      throw new CliError(
        'conflict',
        `${workflowId} is no declared job but a workflow of type ${description.type}`,
      );
    return description;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw toCliError(error, session.about(workflowId));
  }
}

/** Has the workflow told something by a signal, which Temporal keeps whether a worker runs or not. @returns what it says of itself once it has taken that in; `undefined`: nobody answers @throws CliError */
export async function tellDefinition(
  session: Session,
  workflowId: string,
  signal: { readonly name: string },
  body: unknown,
  isTaken: (status: JobDefinitionStatus) => boolean,
): Promise<JobDefinitionStatus | undefined> {
  await session.call((client) => client.workflow.getHandle(workflowId).signal(signal.name, body), {
    workflowId,
  });
  return await untilTaken(session, workflowId, isTaken);
}

/** What it says of itself; `undefined` when no worker answers in time. @throws CliError `not_found`, `usage` */
export async function askDefinition(
  session: Session,
  workflowId: string,
): Promise<JobDefinitionStatus | undefined> {
  try {
    return await session.attemptUntilHeard(
      (client) => client.workflow.getHandle(workflowId).query(jobDefinitionStatusQuery),
      QUERY_TIMEOUT_MS,
    );
  } catch (error) {
    const known = toCliError(error, session.about(workflowId));
    if (known.code === 'not_found' || known.code === 'usage') throw known;
    return undefined;
  }
}

/** Asks until it has taken something in. @returns `undefined`: nobody answers, or not in time @throws CliError */
export async function untilTaken(
  session: Session,
  workflowId: string,
  isTaken: (status: JobDefinitionStatus) => boolean,
): Promise<JobDefinitionStatus | undefined> {
  const deadline = performance.now() + HEARD_WITHIN_MS;
  for (;;) {
    const status = await askDefinition(session, workflowId);
    if (status !== undefined && isTaken(status)) return status;
    if (status === undefined || performance.now() >= deadline) return undefined;
    await delay(LOOK_EVERY_MS);
  }
}
