import { activityInfo } from '@temporalio/activity';
import { FAILURE_TYPES, type ReportStatusInput } from '../../core/activities/index.ts';
import { CONTEXT_PREFIX, type ReportTaken } from '../../core/domain/commitReport.ts';
import { workflowPage } from '../../core/domain/temporalUiLinks.ts';
import { doubled, failure } from '../shared/failures.ts';
import { CiServerError, isStanding, type ActivityPorts } from '../ports.ts';
import { countOf, refusal } from '../shared/rejections.ts';

/** Of a secret that is not there or not accepted, in ms. */
const CREDENTIALS_RETRY_MS = 60_000;

/** A commit that was just pushed is unknown (422) for some seconds, and rights take a moment to be known everywhere. After these tries a refusal is one. */
const STANDING = { tries: 6, firstMs: 2_000, longestMs: 30_000 } as const;

/** The part of a try's time within which it sends: its last request is over when Temporal gives the next try to another worker. */
const SENDING_PART = 0.75;

/**
 * Tells the CI server how a run is. No try may be heard after the one that follows: it has no heartbeats, by whose absence Temporal would soon take it for dead while it still sends;
 * it sends within its own time only; and it is not let go by a cancellation, after which its request might still be carried out.
 */
export async function reportStatus(
  ports: ActivityPorts,
  { credential, ...report }: ReportStatusInput,
): Promise<ReportTaken> {
  const { startToCloseTimeoutMs, namespace } = activityInfo();
  const time = AbortSignal.timeout(startToCloseTimeoutMs * SENDING_PART);
  const link =
    ports.temporalUi === undefined
      ? {}
      : { link: workflowPage(ports.temporalUi, namespace, report.run) };
  try {
    return await ports.ciServers
      .get(credential)
      .reportStatus({ ...report, ...link, context: `${CONTEXT_PREFIX}${report.context}` }, time);
  } catch (error) {
    throw refused(
      time.aborted
        ? new CiServerError(
            'unavailable',
            `credential "${credential}": no answer in time to the report on ${report.commit}`,
            { cause: error },
          )
        : error,
    );
  }
}

function refused(error: unknown): unknown {
  if (!isStanding(error))
    return refusal(error, { credentialsRetryMs: CREDENTIALS_RETRY_MS }, false);
  const times = countOf(error.kind);
  return failure(error.message, FAILURE_TYPES[error.kind], {
    final: times >= STANDING.tries,
    nextRetryDelayMs: doubled(STANDING.firstMs, times, STANDING.longestMs),
  });
}
