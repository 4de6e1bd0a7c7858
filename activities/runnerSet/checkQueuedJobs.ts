/** Checks the job list of the CI server for a set, in case an event was lost. */
import { Context, getClient, log } from '@temporalio/activity';
import {
  queueCheckedSignal,
  setWorkflowId,
  type QueueCheckResult,
} from '../../core/contract/index.ts';
import type { CheckQueuedJobsInput } from '../../core/activities/index.ts';
import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import type { CiJob, CiJobList } from '../../core/domain/ciServer.ts';
import { jobKey, parseJobKey } from '../../core/domain/ciJobState.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { rejection } from '../shared/rejections.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { CiServer } from '../ports/ciServer.ts';
import type { RunningSets } from './runningSets.ts';

/** Maximum age of the list of sets (ms). The sets of a large fleet check their jobs frequently. */
const SETS_AGE_MS = 10_000;

/**
 * Lists the queued and running jobs of a scope and signals to the set those that it has to serve.
 * @returns whether the CI server supports such lists
 * @throws ApplicationFailure if the list or the signal fails
 */
export async function checkQueuedJobs(
  { ciServers }: ActivityPorts,
  running: RunningSets,
  input: CheckQueuedJobsInput,
): Promise<{ supported: boolean }> {
  const { scope, credential, labels, maxAgeMs } = input;
  const stop = unlessCancelled();
  try {
    const server = ciServers.get(credential);
    const seen = await withHeartbeats('list of queued jobs', async () => {
      const listed = await server.listQueuedJobs?.(scope, labels, stop, maxAgeMs);
      return listed && { ...listed, ...(await checkStaleJobs(server, input, listed, stop)) };
    });
    if (seen === undefined) return { supported: false };
    const { jobs, complete, ageMs = 0, found, absent, budgetUntil, unsupported } = seen;
    if (budgetUntil !== undefined || unsupported === true)
      log.warn('check of queued jobs is incomplete', {
        set: input.set,
        scope: scope.name,
        ...omitUndefined({ budgetUntil: budgetUntil && isoTime(budgetUntil), unsupported }),
      });
    // Without this signal the requests would end with their activity, which may belong to a run
    // that has ended.
    await getClient().withAbortSignal(stop, async () => {
      const { mine, others, endedSets } = await jobsOfSet(running, server.kind, input, jobs);
      const result: QueueCheckResult = {
        checkedAt: input.requestedAt - ageMs,
        complete,
        jobs: [...mine, ...found],
        absent: [...absent, ...others],
        endedSets,
        ...omitUndefined({ budgetUntil, unsupported }),
      };
      const handle = getClient().workflow.getHandle(setWorkflowId(input.set));
      for (const part of partsOf(result)) await handle.signal(queueCheckedSignal, part);
    });
    return { supported: true };
  } catch (error) {
    throw rejection(error, { credentialsRetryMs: 60_000 }, { isFinal: false });
  }
}

/**
 * Maximum jobs per signal. Each is about 200 bytes. Temporal warns at 512 KiB and rejects 2 MiB.
 */
const MAX_JOBS = 2_000;

/**
 * Splits the result of a check into signals that Temporal accepts. Only the last one contains the
 * absent jobs; it also has the keys of the jobs in the earlier ones. Sets need no labels, so they
 * are removed.
 */
function partsOf({ jobs, ...result }: QueueCheckResult): QueueCheckResult[] {
  const plain = jobs.map((job): CiJob => ({ ...job, labels: [] }));
  const count = Math.max(1, Math.ceil(plain.length / MAX_JOBS));
  return Array.from({ length: count }, (_none, part) => {
    const from = part * MAX_JOBS;
    const some = plain.slice(from, from + MAX_JOBS);
    if (part < count - 1)
      return { ...result, jobs: some, complete: false, continues: true, absent: [], endedSets: [] };
    return {
      ...result,
      jobs: some,
      ...(from === 0 ? {} : { listed: plain.slice(0, from).map(keyOf) }),
    };
  });
}

/**
 * Returns a signal that aborts when the activity is cancelled, but not when its run has ended. If
 * the set continues as new, the run that requested the check ends, and the next run still needs the
 * result.
 */
function unlessCancelled(): AbortSignal {
  const [context, stop] = [Context.current(), new AbortController()];
  const { cancellationSignal: signal } = context;
  signal.addEventListener('abort', () => {
    if (context.cancellationDetails?.notFound !== true) stop.abort(signal.reason);
  });
  return stop.signal;
}

/**
 * Requests each overdue job that is missing from an incomplete list. Jobs that cannot be requested
 * now are still overdue at the next check.
 */
async function checkStaleJobs(
  server: CiServer,
  { scope, overdue }: CheckQueuedJobsInput,
  { jobs, complete }: CiJobList,
  stop: AbortSignal,
): Promise<{ found: CiJob[]; absent: string[] }> {
  const found: CiJob[] = [];
  const absent: string[] = [];
  const listed = new Set(jobs.map(keyOf));
  for (const { key, repository } of complete ? [] : overdue) {
    if (listed.has(key)) continue;
    try {
      const job = await server.getJob?.(scope, { id: parseJobKey(key).jobId, repository }, stop);
      if (job === 'absent') absent.push(key);
      else if (job !== undefined) found.push(job);
    } catch (error) {
      if (!(error instanceof CiServerError)) throw error;
      log.warn('failed to check jobs without recent events; retrying at the next check', {
        err: error,
      });
      break;
    }
  }
  return { found, absent };
}

const keyOf = ({ id, runAttempt }: CiJob): string => jobKey({ jobId: id, runAttempt });

/**
 * Selects the jobs of this set: those that routing over all running sets assigns to it, those that
 * other sets rerouted to it, and those that its own runners run. `others` has the keys of overdue
 * jobs that belong to other sets. `endedSets` has the sets with rerouted jobs that are not running
 * any more.
 */
async function jobsOfSet(
  running: RunningSets,
  ciServer: CiServerKind,
  { set, scope, overdue, reroutedHere, reroutedTo }: CheckQueuedJobsInput,
  jobs: readonly CiJob[],
): Promise<{ mine: CiJob[]; others: string[]; endedSets: string[] }> {
  if (jobs.length === 0 && reroutedTo.length === 0) return { mine: [], others: [], endedSets: [] };
  const { routing, ids, stale } = await running.list(SETS_AGE_MS);
  const origin = {
    ciServer,
    ...(scope.kind === 'enterprise' ? { enterprise: scope.name } : {}),
  };
  const here = new Set(reroutedHere);
  const isMine = (job: CiJob): boolean => {
    const routed = {
      jobId: job.id,
      runAttempt: job.runAttempt,
      repository: job.repository,
      labels: [...job.labels],
    };
    if (
      here.has(jobKey(routed)) ||
      (job.runnerName !== undefined && runnerWorkflowIdFromName(set, job.runnerName) !== undefined)
    )
      return true;
    return routing.setFor(routed, origin)?.workflowId === setWorkflowId(set);
  };
  const [mine, elsewhere] = [jobs.filter(isMine), jobs.filter((job) => !isMine(job))];
  const others = new Set(elsewhere.map(keyOf));
  const unlabeled = elsewhere.filter(({ labels }) => labels.length === 0);
  if (unlabeled.length > 0)
    log.info('queued jobs without labels skipped: only sets with groupJobs serve them', {
      count: unlabeled.length,
      repositories: [...new Set(unlabeled.map(({ repository }) => repository))].slice(0, 20),
    });
  // A set that was started since then has taken them over.
  return {
    mine,
    others: overdue.flatMap(({ key }) => (others.has(key) ? [key] : [])),
    // An old list lacks the sets that were started since.
    endedSets: stale === true ? [] : reroutedTo.filter((workflowId) => !ids.has(workflowId)),
  };
}
