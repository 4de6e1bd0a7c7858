import { TestWorkflowEnvironment } from '@temporalio/testing';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';

/**
 * A Temporal server of its own that suggests to continue as new after a few events.
 * @throws ComponentUnavailableError where there is no such server on this machine
 */
export async function temporalWithShortHistories(suggestContinueAsNewAt: number): Promise<TestWorkflowEnvironment> {
  return await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: await resolveBinary('temporal') },
      searchAttributes: Object.values(SEARCH_ATTRIBUTES),
      extraArgs: ['--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${suggestContinueAsNewAt}`],
    },
  });
}
