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
 * Returns a warning for each set that lacks such labels.
 * @param sets - routing by workflow ID
 */
export function evaluateSetLabels(
  sets: ReadonlyMap<string, SetRoutingInfo | undefined>,
): Finding[] {
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
