/** The sweep as an activity: of the place that this worker serves, with its ports and the Worker's client. */
import { activityInfo, cancellationSignal, getClient, log } from '@temporalio/activity';
import { FAILURE_TYPES, type SweepLocationInput } from '../../core/activities/index.ts';
import { clusterTaskQueue, type SweepReport } from '../../core/contract/index.ts';
import { incompleteMessage } from '../../core/domain/sweepSummary.ts';
import { parseSweepInput } from '../../core/input/sweep.ts';
import { invalidInput } from '../shared/invalidInput.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import type { ActivityPorts, Logger } from '../ports.ts';
import { refusal } from '../shared/rejections.ts';
import { lastMarks } from './lastMarks.ts';
import { sweep } from './sweep.ts';

/** Of what a sweep throws. What a credential is refused is in the report. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/** The next try comes soon: a list that is cut off now may be whole then. */
const INCOMPLETE_RETRY_MS = 3_000;

const LOGGER: Logger = {
  info: (fields, message) => log.info(message, { ...fields }),
  warn: (fields, message) => log.warn(message, { ...fields }),
};

/** @throws ApplicationFailure `InvalidInput`; `SweepIncomplete` with the report as its detail, to be tried again */
export async function sweepLocation(
  { compute, ciServers, onSweep }: ActivityPorts,
  { input, taskQueue }: SweepLocationInput,
): Promise<SweepReport> {
  const parsed = parseSweepInput(input);
  if (!parsed.ok) throw invalidInput(parsed.errors);
  if (clusterTaskQueue(taskQueue) !== activityInfo().taskQueue)
    throw invalidInput([
      {
        field: 'taskQueue',
        message: `must be the one whose sweeps are done on ${activityInfo().taskQueue}`,
      },
    ]);
  let doing = 'sweeping';
  const progress = (now: string): void => void (doing = now);
  const sources = {
    compute,
    ciServers,
    client: getClient(),
    taskQueue,
    logger: LOGGER,
    resources: 'where permitted',
    progress,
    signal: cancellationSignal(),
  } as const;
  let report: SweepReport;
  try {
    report = await withHeartbeats(
      () => doing,
      async () => await sweep(sources, parsed.spec, await lastMarks(sources.client, taskQueue)),
    );
  } catch (error) {
    throw refusal(error, NO_CREDENTIALS, true);
  }
  onSweep?.(report);
  if (report.incompleteLists.length === 0) return report;
  throw applicationFailure(
    incompleteMessage(report.incompleteLists),
    FAILURE_TYPES.sweepIncomplete,
    {
      nextRetryDelayMs: INCOMPLETE_RETRY_MS,
      details: [report],
    },
  );
}
