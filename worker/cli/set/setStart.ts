/** Starts the workflow of a set. */
import { SEARCH_ATTRIBUTES, RUNNER_SET_WORKFLOW, SET_COVER_MEMO, setWorkflowId, type RunnerSetInput, type SetCover, type SetScale } from '../../../core/contract/index.ts';
import { fairnessKey } from '../../../core/domain/fairnessKey.ts';
import { printable } from '../../../core/domain/shownText.ts';
import type { SetSpec } from '../../../core/input/runnerSet.ts';
import type { Session } from '../temporal/session.ts';
import { workflowSummary } from '../temporal/summary.ts';

/** @returns the id of its run @throws what the client throws: `WorkflowExecutionAlreadyStartedError` among others */
export async function startSet(session: Session, input: RunnerSetInput, spec: SetSpec): Promise<string> {
  const workflowId = setWorkflowId(spec.name);
  const handle = await session.attempt((client) =>
    client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId,
      taskQueue: session.settings.taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: workflowSummary(`set of ${summaryOf(spec)}`),
      // From the start, so that the webhook finds it before a worker does.
      memo: { [SET_COVER_MEMO]: coverOf(spec) },
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.set, value: spec.name }, ...(spec.scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }])],
      priority: { fairnessKey: fairnessKey(spec.scope?.name ?? spec.name) },
    }),
  );
  return handle.firstExecutionRunId;
}

/** Plain commands have no scope, and no job is for them. */
function coverOf({ labels, scope }: SetSpec): SetCover {
  return { labels: [...labels], scope: scope?.name ?? '', scopeKind: scope?.kind ?? 'organization' };
}

/** `ephemeral runners for acme (linux, x64)` */
export function summaryOf({ ephemeral, scope, labels, template }: SetSpec): string {
  if (scope === undefined) return printable((template.command ?? []).join(' '));
  return printable(`${ephemeral ? 'ephemeral' : 'static'} runners for ${scope.name} (${labels.join(', ')})`);
}

/** `3 runners`, `2 idle, 20 at the most` */
export function sizeText({ replicas, minIdle = 0, max }: SetScale): string {
  return replicas === undefined ? `${minIdle} idle, ${max} at the most` : countText(replicas);
}

/** `1 runner`, `3 runners` */
export const countText = (count: number): string => `${count} runner${count === 1 ? '' : 's'}`;
