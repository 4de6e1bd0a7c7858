/** Finds objects by their IDs, and lists them. */
import type { WorkflowExecutionDescription, WorkflowExecutionInfo } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CliError } from './exit.ts';
import type { Output } from './output.ts';
import type { ResourceKind } from './resourceKind.ts';
import type { Session } from './session.ts';
import { toCliError } from './temporalErrors.ts';

/**
 * Finds a running object, or the last one with that ID.
 * @throws CliError `not_found`, also if the ID belongs to another workflow; `usage`, `unreachable`
 */
export async function describeResource(
  session: Session,
  { noun, workflowType, candidates }: ResourceKind,
  nameOrId: string,
): Promise<WorkflowExecutionDescription> {
  for (const workflowId of candidates(nameOrId)) {
    const found = await describeWorkflow(session, workflowId);
    if (found?.type === workflowType) return found;
    if (found !== undefined)
      throw new CliError(
        'not_found',
        `${workflowId} is not a ${noun} but a workflow of type ${found.type}`,
      );
  }
  throw new CliError(
    'not_found',
    `no ${noun} ${nameOrId} in namespace ${session.settings.namespace}; see "holdfast ${noun} list --all"`,
  );
}

/**
 * Describes a workflow. Returns `undefined` if there is none, or its history was deleted.
 * @throws CliError `usage`, `unreachable`
 */
export async function describeWorkflow(
  session: Session,
  workflowId: string,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    return await session.attempt((client) => client.workflow.getHandle(workflowId).describe());
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw toCliError(error, session.errorSubject(workflowId));
  }
}

/** Timeout of a list of any length (ms). */
const LIST_TIMEOUT_MS = 60_000;

/**
 * Lists workflows, newest first, at most `limit`.
 * @returns the workflows, and whether there are more
 * @throws CliError `usage`, `unreachable`
 */
export async function listWorkflows(
  session: Session,
  query: string,
  limit: number,
): Promise<{ found: WorkflowExecutionInfo[]; more: boolean }> {
  return await session.call(
    async (client) => {
      const found: WorkflowExecutionInfo[] = [];
      for await (const info of client.workflow.list({
        query,
        pageSize: Math.min(limit + 1, 1_000),
      })) {
        if (found.length === limit) return { found, more: true };
        found.push(info);
      }
      return { found, more: false };
    },
    { timeoutMs: LIST_TIMEOUT_MS },
  );
}

/** Result of a list command. */
export interface Listing<Row> {
  readonly kind: ResourceKind;
  readonly rows: readonly Row[];
  /** Whether there are more than `limit`. */
  readonly more: boolean;
  readonly limit: number;
  /** List filter, for the link to the Temporal UI. */
  readonly query: string;
  /** Text of the rows, for people. */
  readonly lines: () => readonly string[];
  /** Message for people if there are none. */
  readonly none: string;
}

/** Prints a list, and notes about it for people. */
export function printList<Row>(
  session: Session,
  output: Output,
  { kind, rows, more, limit, query, lines, none }: Listing<Row>,
): void {
  const ui = session.listLink(query);
  output.result(
    { [kind.plural]: rows, more, ...omitUndefined({ ui }) },
    rows.length === 0 ? [] : lines(),
  );
  if (output.json) return;
  if (rows.length === 0) output.note('none', none);
  if (more) output.note('more', `showing ${limit}; use --limit to show more`);
  if (ui !== undefined && rows.length > 0) output.note('ui', `in Temporal's UI: ${ui}`);
}
