/** Implements `holdfast runner drain` and `holdfast runner cancel`, for IDs or for a selection. */
import {
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import pMap from 'p-map';
import { cancelSignal, drainUpdate, type CancelMode } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { confirm } from '../shared/confirm.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import { waitForResult, type RunnerEnd } from '../shared/followRunner.ts';
import { forEachId, type IdResult } from '../shared/forEachId.ts';
import { describeResource } from '../shared/resource.ts';
import { RUNNER } from '../shared/resourceKind.ts';
import { selectRunners } from './listRunners.ts';
import type { Output } from '../shared/output.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Selection } from '../shared/selection.ts';
import type { Session } from '../shared/session.ts';
import { toCliError } from '../shared/temporalErrors.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Options of `holdfast runner drain` and `holdfast runner cancel`. */
export interface StopOptions {
  readonly action: 'drain' | 'cancel';
  readonly mode: CancelMode;
  readonly reason?: string;
  /**
   * Whether to wait until the runners have ended.
   * @default false
   */
  readonly wait?: boolean;
  /**
   * Whether to skip the confirmation.
   * @default false
   */
  readonly yes?: boolean;
}

/** Result of the request for one runner. */
interface Stopped {
  readonly id: string;
  readonly runId: string;
  readonly accepted: boolean;
  readonly mode: CancelMode;
  readonly note?: string;
  readonly end?: RunnerEnd;
}

/**
 * Maximum number of concurrent requests. More would queue at the server, and waits would reach the
 * poller limit of the namespace.
 */
const CONCURRENCY = 10;
const MAX_SELECTED = 10_000;
/** Timeout of the update (ms). A running worker answers sooner. */
const UPDATE_TIMEOUT_MS = 5_000;

/**
 * Drains or cancels the runners with the IDs, or those of a selection after a confirmation.
 * @returns the exit status
 * @throws CliError
 */
export async function stopRunners(
  session: Session,
  output: Output,
  target: { readonly ids: readonly string[]; readonly selection: Selection },
  options: StopOptions,
): Promise<number> {
  const { ids, selection } = target;
  if (ids.length > 0)
    return await forEachId(output, 'runners', ids, async (id) => {
      const { workflowId, runId } = await describeResource(session, RUNNER, id);
      const requested = await stopOne(session, { workflowId, runId }, options);
      return async () => resultOf(await ended(session, requested, options), options);
    });
  // All requests are sent before the first wait: a runner without a request takes another job.
  const requested = await pMap(
    await confirmed(session, output, selection, options),
    async (runner) => await stopOneOfMany(session, runner, options),
    { concurrency: CONCURRENCY },
  );
  const results = await Promise.all(
    requested.map(async (each) => await ended(session, each, options)),
  );
  output.result(
    { runners: results },
    results.length === 0
      ? ['no running runner matches']
      : results.map((each) => describe(each, options.action)),
  );
  return results.every((each) => each.accepted && !isBad(each.end)) ? EXIT.ok : EXIT.failed;
}

const resultOf = (stopped: Stopped, { action }: StopOptions): IdResult => ({
  document: stopped,
  lines: [describe(stopped, action)],
  failed: isBad(stopped.end),
});

/** Returns whether the runner failed. After a request to stop, `aborted` is the expected outcome. */
const isBad = (end: RunnerEnd | undefined): boolean =>
  end !== undefined && !['succeeded', 'aborted', 'cancelled'].includes(end.outcome);

interface RunnerRun {
  readonly workflowId: string;
  readonly runId: string;
}

/**
 * Sends the request to one runner.
 * @throws CliError
 */
async function stopOne(
  session: Session,
  { workflowId, runId }: RunnerRun,
  options: StopOptions,
): Promise<Stopped> {
  const note = await requestStop(session, workflowId, options);
  return {
    id: workflowId,
    runId,
    mode: options.mode,
    accepted: true,
    ...omitUndefined({ note }),
  };
}

/**
 * Stops a selected runner. It may have ended meanwhile, and its failure must not hide the results
 * of the others.
 */
async function stopOneOfMany(
  session: Session,
  runner: RunnerRun,
  options: StopOptions,
): Promise<Stopped> {
  try {
    return await stopOne(session, runner, options);
  } catch (error) {
    const { workflowId: id, runId } = runner;
    return { id, runId, mode: options.mode, accepted: false, note: errorMessage(error) };
  }
}

/** With `wait`, waits until the runner has ended. */
async function ended(
  session: Session,
  stopped: Stopped,
  { wait = false }: StopOptions,
): Promise<Stopped> {
  if (!wait || !stopped.accepted) return stopped;
  const { id, runId } = stopped;
  const end = await waitForResult(session, id, runId, new AbortController().signal);
  return { ...stopped, end };
}

/**
 * Sends the request to one runner.
 * @returns a note about the result, if there is one
 * @throws CliError
 */
export async function requestStop(
  session: Session,
  workflowId: string,
  options: StopOptions,
): Promise<string | undefined> {
  const reason = options.reason ?? `${options.action} ${requestedBy()}`;
  const handle = session.client.workflow.getHandle(workflowId);
  if (options.action === 'drain') {
    try {
      await session.update(workflowId, drainUpdate.name, { reason }, UPDATE_TIMEOUT_MS);
      return undefined;
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError)
        throw new CliError(
          'failed',
          `${workflowId} rejected the drain: ${error.cause?.message ?? error.message}`,
          { cause: error },
        );
      if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError))
        throw toCliError(error, session.errorSubject(workflowId));
    }
  }
  await session.call(
    () =>
      handle.signal(cancelSignal, {
        mode: options.mode,
        reason,
        planned: options.action === 'drain',
      }),
    { workflowId },
  );
  // Temporal keeps a signal until a worker runs, but not an update.
  return options.action === 'drain'
    ? 'no worker answered; the request was sent as a signal and takes effect once a worker runs'
    : undefined;
}

async function confirmed(
  session: Session,
  output: Output,
  selection: Selection,
  options: StopOptions,
): Promise<{ workflowId: string; runId: string }[]> {
  const { rows, more } = await selectRunners(session, selection, MAX_SELECTED);
  if (more)
    throw new CliError(
      'usage',
      `more than ${MAX_SELECTED} runners match; narrow the selection with --query`,
    );
  if (rows.length > 0 && !options.yes)
    await confirm(
      output,
      `${options.action}${options.action === 'cancel' ? ` (${options.mode})` : ''} ${rows.length} runner${rows.length === 1 ? '' : 's'}: ${rows
        .slice(0, 5)
        .map((row) => row.id)
        .join(', ')}${rows.length > 5 ? ', …' : ''}`,
    );
  return rows.map((row) => ({ workflowId: row.id, runId: row.runId }));
}

function describe(stopped: Stopped, action: 'drain' | 'cancel'): string {
  const { end } = stopped;
  if (!stopped.accepted) return `${stopped.id}: not accepted: ${stopped.note}`;
  if (end !== undefined)
    return `${stopped.id}: ${[end.outcome, end.cause].filter(Boolean).join('/')}: ${end.message}`;
  return `${stopped.id}: ${action === 'drain' ? 'drain' : `cancel (${stopped.mode})`} ${stopped.note === undefined ? 'accepted' : `sent; ${stopped.note}`}`;
}
