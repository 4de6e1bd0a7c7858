import { TestWorkflowEnvironment } from '@temporalio/testing';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';

/**
 * Starts a Temporal server that suggests continue-as-new after a few events, and allows 10 lists
 * per second, as Temporal's servers do by default; a dev server allows more.
 * @throws ComponentUnavailableError if there is no such server on this machine
 */
export async function temporalWithShortHistories(
  suggestContinueAsNewAt: number,
): Promise<TestWorkflowEnvironment> {
  return await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: await resolveBinary('temporal') },
      searchAttributes: Object.values(SEARCH_ATTRIBUTES),
      extraArgs: [
        `limit.historyCount.suggestContinueAsNew=${suggestContinueAsNewAt}`,
        'frontend.namespaceRPS.visibility=10',
      ].flatMap((value) => ['--dynamic-config-value', value]),
    },
  });
}
