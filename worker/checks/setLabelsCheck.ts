/** Checks whether sets lack labels that jobs for self-hosted runners often request. */
import { Client, type ConnectionLike } from '@temporalio/client';
import { listRoutingInfo } from '../../activities/runnerSet/listRoutingInfo.ts';
import { parseSetWorkflowId, type SetRoutingInfo } from '../../core/contract/index.ts';
import { implicitLabelsText, missingImplicitLabels } from '../../core/domain/implicitLabels.ts';
import { dataConverterOf } from '../codec/dataConverter.ts';
import type { HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** Maximum number of sets that are checked. */
const MAX_SETS = 1_000;

/**
 * Checks the labels of all sets of the task queue, as their memos contain them.
 * @throws the error of the connection if Temporal does not answer
 */
export async function checkSetLabels(
  {
    temporal: { namespace },
    taskQueue,
    codecKeyFile,
  }: Pick<HoldfastConfig, 'temporal' | 'taskQueue' | 'codecKeyFile'>,
  connection: ConnectionLike,
): Promise<Finding[]> {
  const client = new Client({
    connection,
    namespace,
    dataConverter: dataConverterOf(codecKeyFile),
  });
  return evaluateSetLabels(await listRoutingInfo(client, taskQueue, MAX_SETS));
}

/**
 * Returns a warning for each set that lacks such labels, or has jobs in common with a scale set.
 * @param sets - routing by workflow ID
 */
export function evaluateSetLabels(
  sets: ReadonlyMap<string, SetRoutingInfo | undefined>,
): Finding[] {
  return [...missingLabelFindings(sets), ...doubleDemandFindings(sets)];
}

/**
 * Returns a warning for each set with a webhook that also serves jobs of a scale set. Both would
 * start a runner for the same job.
 */
function doubleDemandFindings(sets: ReadonlyMap<string, SetRoutingInfo | undefined>): Finding[] {
  const known = [...sets].flatMap(([id, routing]) =>
    routing === undefined ? [] : [{ id, routing }],
  );
  // A set whose jobs GitHub assigns has no CI server in its routing.
  const ofScaleSets = known.filter(({ routing }) => routing.ciServer === undefined);
  const byWebhook = known.filter(({ routing }) => routing.ciServer !== undefined);
  return ofScaleSets.flatMap((assigned) =>
    byWebhook
      .filter(({ routing }) => haveJobsInCommon(assigned.routing, routing))
      .map(({ id }): Finding => ({
        level: 'warning',
        message: `sets ${parseSetWorkflowId(assigned.id)} (scale set) and ${parseSetWorkflowId(id)} (webhook) have the same labels in ${assigned.routing.scope}: both start a runner for a job`,
        fix: 'give one of them other labels, or set template.demand to "scaleSet" in both',
      })),
  );
}

/** Whether a job can request the labels of both. */
function haveJobsInCommon(one: SetRoutingInfo, other: SetRoutingInfo): boolean {
  const requested = ({ labels }: SetRoutingInfo): string[] =>
    labels.map((label) => label.toLowerCase()).filter((label) => label !== 'self-hosted');
  const [a, b] = [requested(one), requested(other)];
  return (
    one.scopeKind === other.scopeKind &&
    one.scope.toLowerCase() === other.scope.toLowerCase() &&
    a.length > 0 &&
    b.length > 0 &&
    (a.every((label) => b.includes(label)) || b.every((label) => a.includes(label)))
  );
}

function missingLabelFindings(sets: ReadonlyMap<string, SetRoutingInfo | undefined>): Finding[] {
  return [...sets].flatMap(([workflowId, routing]): Finding[] => {
    const missing = missingImplicitLabels(routing?.ciServer, routing?.labels ?? []);
    return missing.length === 0
      ? []
      : [
          {
            level: 'warning',
            message: implicitLabelsText(parseSetWorkflowId(workflowId), missing),
            fix: 'add them to template.labels if this set is for such jobs ("holdfast set apply")',
          },
        ];
  });
}
