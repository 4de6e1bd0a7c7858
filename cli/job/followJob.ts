/** Follows a running job: its log and what it waits for. */
import type { JobStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import type { AttachTarget } from '../shared/attachTarget.ts';
import { sleep } from '../shared/followRunner.ts';
import { queryStatus } from '../shared/runnerRow.ts';
import type { Output } from '../shared/output.ts';
import { CliError } from '../shared/exit.ts';
import type { Session } from '../shared/session.ts';
import { NO_WORKER, readJob } from './jobClient.ts';
import { describeResource } from '../shared/resource.ts';
import { JOB } from '../shared/resourceKind.ts';

/** Interval between status queries (ms). */
const REFRESH_MS = 1_000;

/** Attach target for a job. */
export const ATTACHED_JOB: AttachTarget = {
  commands: {
    run: 'holdfast job run',
    attach: 'holdfast job logs --follow',
    get: 'holdfast job get',
    cancel: 'holdfast job cancel',
  },
  drains: 'the running stage may finish, then post runs',
  find: async (session, id) => {
    const { workflowId, runId } = await describeResource(session, JOB, id);
    return { workflowId, runId, attached: true };
  },
  observe: async (session, workflowId) => {
    const status = await queryStatus<JobStatus>(session, workflowId);
    if (status === undefined) return undefined;
    const { stage = 'ending', waitingFor, waitingUntil, cancel, log } = status;
    return { phase: stage, status: omitUndefined({ waitingFor, waitingUntil, cancel }), log };
  },
};

/**
 * Implements `holdfast job logs`: prints the lines of the job's own log. With `timestamps`, each
 * follows its time.
 * @param follow - whether to continue until the job has ended
 * @throws CliError `failed` if no worker answers
 */
export async function jobLogs(
  session: Session,
  output: Output,
  id: string,
  { follow = false, timestamps = false }: { follow?: boolean; timestamps?: boolean },
): Promise<void> {
  const forever = new AbortController().signal;
  let printed = 0;
  for (;;) {
    const description = await describeResource(session, JOB, id);
    const { workflowId, status } = description;
    const { job, end } = await readJob(session, description);
    const log = job?.log;
    if (log === undefined && end?.outcome === 'failed')
      throw new CliError('failed', `${workflowId} has no log: ${end.message}`);
    if (log === undefined && !follow) throw new CliError('failed', `${workflowId}: ${NO_WORKER}`);
    for (const { at, message } of (log ?? []).slice(printed))
      output.line(timestamps ? `${at} ${message}` : message);
    printed = Math.max(printed, log?.length ?? 0);
    if (!follow || !isOpen(status))
      return output.json ? output.result({ id: workflowId, log: log ?? [] }, []) : undefined;
    await sleep(REFRESH_MS, forever);
  }
}
