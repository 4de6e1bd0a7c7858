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
 * One sweep: looks at workflows, pods and registrations, and marks or repairs what disagrees. A Schedule starts it every few minutes; what it
 * has marked is repaired by the next one, if it still is so then.
 * @throws ApplicationFailure `SweepIncomplete` when a list could not be had: nothing was touched, and the report is its detail; `InvalidInput`
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

/** The activity's own failure is the workflow's: what went wrong is read at first sight. */
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
