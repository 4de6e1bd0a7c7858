import {
  ActivityFailure,
  ApplicationFailure,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { SEARCH_ATTRIBUTES, type SweepInput, type SweepReport } from '../core/contract/index.ts';
import { sweepOutcome, sweepSummary } from '../core/domain/sweepSummary.ts';
import { sweepActivities } from './shared/activityProxies.ts';

/**
 * Runs one sweep: compares workflows, pods and registrations, and marks or repairs inconsistencies.
 * A Schedule starts it every few minutes. The next sweep repairs what this one marked, if the
 * inconsistency persists.
 *
 * @throws ApplicationFailure `SweepIncomplete` if a list could not be read: nothing was changed,
 * and the report is in the failure's details
 * @throws ApplicationFailure `InvalidInput`
 */
export async function sweep(input?: SweepInput): Promise<SweepReport> {
  const { taskQueue } = workflowInfo();
  const report = await sweepPlace({ input, taskQueue });
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.place, value: report.location },
    { key: SEARCH_ATTRIBUTES.outcome, value: sweepOutcome(report) },
  ]);
  setCurrentDetails(sweepSummary(report));
  return report;
}

/**
 * Runs the activity and throws its failure as the workflow's own, so that the UI shows the reason
 * directly.
 */
async function sweepPlace(
  input: Parameters<ReturnType<typeof sweepActivities>['sweepPlace']>[0],
): Promise<SweepReport> {
  try {
    return await sweepActivities().sweepPlace(input);
  } catch (error) {
    if (!(error instanceof ActivityFailure) || !(error.cause instanceof ApplicationFailure))
      throw error;
    const { message, type, details } = error.cause;
    setCurrentDetails(message);
    throw ApplicationFailure.create({
      message,
      nonRetryable: true,
      details: details ?? [],
      ...(typeof type === 'string' ? { type } : {}),
    });
  }
}
