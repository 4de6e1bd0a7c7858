/** The activity that sweeps the location of this worker. */
import { activityInfo, cancellationSignal, getClient, log } from '@temporalio/activity';
import { FAILURE_TYPES, type SweepLocationInput } from '../../core/activities/index.ts';
import { clusterTaskQueue, type SweepReport } from '../../core/contract/index.ts';
import { incompleteMessage } from '../../core/domain/sweepSummary.ts';
import { parseSweepInput } from '../../core/input/sweep.ts';
import { invalidInput } from '../shared/invalidInput.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { Logger } from '../ports/logger.ts';
import { rejection } from '../shared/rejections.ts';
import { lastMarks } from './lastMarks.ts';
import { sweep } from './sweep.ts';

/** Retry interval for errors thrown by a sweep. Rejected credentials are in the report instead. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/** Short, because a list that is incomplete now may soon be complete. */
const INCOMPLETE_RETRY_MS = 3_000;

const LOGGER: Logger = {
  info: (fields, message) => log.info(message, { ...fields }),
  warn: (fields, message) => log.warn(message, { ...fields }),
};

/**
 * Sweeps the location of this worker, with the marks of the last completed sweep.
 * @throws ApplicationFailure `InvalidInput` if the input is invalid or for another task queue
 * @throws ApplicationFailure `SweepIncomplete`, which is retried, with the report as its detail
 */
export async function sweepLocation(
  { compute, ciServers, onSweep }: ActivityPorts,
  { input, taskQueue }: SweepLocationInput,
): Promise<SweepReport> {
  const parsed = parseSweepInput(input);
  if (!parsed.ok) throw invalidInput(parsed.errors);
  if (clusterTaskQueue(taskQueue) !== activityInfo().taskQueue)
    throw invalidInput([
      {
        code: 'conflict',
        field: 'taskQueue',
        message: `must be the location of the sweeps on ${activityInfo().taskQueue}`,
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
    throw rejection(error, NO_CREDENTIALS, { isFinal: true });
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
