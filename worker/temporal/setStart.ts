/** Options that start the workflow of a set. Controller and command-line tool share them. */
import type { WorkflowStartOptions } from '@temporalio/client';
import {
  SEARCH_ATTRIBUTES,
  SET_CAPACITY_MEMO,
  SET_ROUTING_MEMO,
  setWorkflowId,
  type RunnerSetInput,
} from '../../core/contract/index.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { routingInfo, scaleSetRoutingInfo } from '../../core/domain/routingInfo.ts';
import { SETS_PRIORITY_KEY, SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import { stripControlCharacters } from '../../core/domain/displayText.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';

/**
 * Returns the options for a set.
 * @param spec - parsed `input`
 */
export function setStartOptions(
  input: RunnerSetInput,
  spec: SetSpec,
  taskQueue: string,
): WorkflowStartOptions & { memo: Record<string, unknown> } {
  return {
    workflowId: setWorkflowId(spec.name),
    taskQueue,
    args: [input],
    workflowTaskTimeout: SET_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: 'FAIL',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    staticSummary: workflowSummary(`set of ${setSummary(spec)}`),
    // Set the memo at the start, so that the webhook finds the set before a worker does. Without a
    // capacity, a listener that is still running would consider the set one without a scale set.
    memo:
      spec.scaleSet === undefined
        ? { [SET_ROUTING_MEMO]: routingInfo(spec) }
        : { [SET_ROUTING_MEMO]: scaleSetRoutingInfo(spec), [SET_CAPACITY_MEMO]: 0 },
    typedSearchAttributes: [
      { key: SEARCH_ATTRIBUTES.set, value: spec.name },
      ...(spec.scope === undefined
        ? []
        : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }]),
    ],
    priority: {
      priorityKey: SETS_PRIORITY_KEY,
      fairnessKey: fairnessKey(spec.scope?.name ?? spec.name),
    },
  };
}

/** Returns a summary such as `ephemeral runners for acme (linux, x64)`. */
export function setSummary({ ephemeral, scope, labels, template }: SetSpec): string {
  if (scope === undefined) return stripControlCharacters((template.command ?? []).join(' '));
  return stripControlCharacters(
    `${ephemeral ? 'ephemeral' : 'static'} runners for ${scope.name} (${labels.join(', ')})`,
  );
}
