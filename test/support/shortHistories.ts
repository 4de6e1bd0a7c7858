import { TestWorkflowEnvironment } from '@temporalio/testing';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';

/**
 * A Temporal server of its own that suggests to continue as new after a few events, and allows 10 lists a second, as Temporal's do by default; a dev server allows more.
 * @throws ComponentUnavailableError where there is no such server on this machine
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
