/** Implements `holdfast set scale|pause|resume|hold|delete`. */
import {
  type RunnerSetStatus,
  type SetCommandResult,
  type SetScale,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { confirm } from '../shared/confirm.ts';
import { CliError } from '../shared/exit.ts';
import type { Awaited, IdResult } from '../shared/forEachId.ts';
import type { Output } from '../shared/output.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Session } from '../shared/session.ts';
import {
  queryAdmittedSet,
  submitSetCommand,
  nameOf,
  runningSet,
  runSetCommand,
  type CommandedSet,
} from './setClient.ts';
import { waitForSetEnd } from './setEnd.ts';
import { boundsText } from './setGet.ts';
import { countText } from './setStart.ts';

/** Maximum number of runners that are drained without a confirmation. */
const MANY = 10;

/**
 * Changes the size of a set.
 * @throws CliError as {@link runSetCommand}
 */
export async function scaleSet(
  session: Session,
  output: Output,
  name: string,
  scale: SetScale,
): Promise<void> {
  const status = await runSetCommand(session, await runningSet(session, name), {
    command: 'scale',
    ...scale,
  });
  const now = `${countText(status.desired)} wanted now (${boundsText(status)})`;
  output.result(status, [`${status.name}: ${now}`]);
  if (!saysSo(status, scale))
    output.note(
      'schedule',
      `${status.name}: a schedule is active; the new size takes effect when it ends`,
    );
}

const saysSo = (
  { min, max, replicas: fixed }: SetCommandResult,
  { replicas, minIdle, max: most }: SetScale,
): boolean =>
  (replicas === undefined || replicas === fixed) &&
  (minIdle === undefined || minIdle === min) &&
  (most === undefined || most === max);

/**
 * Pauses a set. A paused set starts and drains no runners; its running ones continue.
 * @throws CliError
 */
export async function pauseSet(
  session: Session,
  name: string,
  reason: string = requestedBy(),
): Promise<IdResult> {
  const status = await runSetCommand(session, await runningSet(session, name), {
    command: 'pause',
    reason,
  });
  const line = `${status.name}: paused; no runner is started or drained, running ones continue`;
  return { document: status, lines: [line] };
}

/**
 * Resumes a paused set.
 * @throws CliError
 */
export async function resumeSet(session: Session, name: string): Promise<IdResult> {
  const status = await runSetCommand(session, await runningSet(session, name), {
    command: 'resume',
  });
  const line = `${status.name}: resumed, ${countText(status.desired)} wanted now`;
  return { document: status, lines: [line] };
}

/**
 * Holds or releases a runner of a set.
 * @param runner - workflow ID, with or without `runner-`, or name at the CI server
 */
export async function holdRunner(
  session: Session,
  output: Output,
  name: string,
  runner: string,
  { release }: { release: boolean },
): Promise<void> {
  const set = await runningSet(session, name);
  const found = findIn(await statusOf(session, set.workflowId), runner, release);
  const status = await runSetCommand(session, set, { command: 'hold', runner: found, release });
  output.result(status, [
    `${status.name}: ${found} ${release ? 'released' : 'held; excluded from scale-downs and rollouts'}`,
  ]);
}

/**
 * Returns the name under which the set knows a runner.
 * @throws CliError `not_found`
 */
function findIn(
  { name, runners, holds }: RunnerSetStatus,
  runner: string,
  release: boolean,
): string {
  const found = runners.find(
    ({ workflowId, runnerName }) =>
      workflowId === runner || workflowId === `runner-${runner}` || runnerName === runner,
  );
  if (release) {
    const names = [runner, found?.workflowId, found?.runnerName];
    const held = holds.find((each) => names.includes(each));
    if (held === undefined)
      throw new CliError(
        'not_found',
        `set ${name} does not hold ${runner}; held runners: ${holds.length === 0 ? 'none' : holds.join(', ')}`,
      );
    return held;
  }
  if (found === undefined)
    throw new CliError(
      'not_found',
      `set ${name} has no runner ${runner}; see "holdfast set get ${name}"`,
    );
  return found.workflowId;
}

/**
 * Deletes a set: drains its runners, then ends it.
 * @throws CliError
 */
export async function deleteSet(
  session: Session,
  output: Output,
  nameOrId: string,
  options: { wait?: boolean; yes?: boolean; reason?: string },
): Promise<IdResult | Awaited> {
  const set = await runningSet(session, nameOrId);
  const { workflowId, runId } = set;
  const name = nameOf(workflowId);
  const { status, line, note } = await requestDeletion(session, output, set, options);
  if (!options.wait)
    return {
      document: { ...status, name, deleted: false, ...omitUndefined({ note }) },
      lines: [line],
    };
  output.note('waiting', line);
  return async () => {
    const end = await waitForSetEnd(session, workflowId, runId);
    // A set that is cancelled ends after its runners, too.
    const deleted = end.outcome === 'ended' || end.outcome === 'cancelled';
    return {
      document: { name, deleted, end },
      lines: [`${name}: ${end.outcome}: ${end.message}`],
      failed: !deleted,
    };
  };
}

/**
 * Makes a set drain its runners and end.
 * @param set - a running set
 * @throws CliError as {@link runSetCommand}
 */
export async function requestDeletion(
  session: Session,
  output: Output,
  set: CommandedSet,
  { yes, reason = requestedBy() }: { yes?: boolean; reason?: string },
): Promise<{ line: string; note?: string; status?: SetCommandResult }> {
  const name = nameOf(set.workflowId);
  const before = await queryAdmittedSet(session, set.workflowId, { max: 0 });
  if (before === undefined) {
    if (!yes)
      throw new CliError(
        'failed',
        `set ${name}: no worker answered within 3 s, so the number of its runners is unknown; nothing was done. Add --yes to delete it once a worker runs`,
      );
    await submitSetCommand(session, set, { command: 'drain', reason });
    const note = 'no worker answered; the request was sent and takes effect once a worker runs';
    return { line: `${name}: ${note}`, note };
  }
  const count = Object.values(before.runnerCounts).reduce((sum, each) => sum + each, 0);
  if (count > MANY && !yes)
    await confirm(output, `drain ${countText(count)} and delete the set ${name}`);
  const status = await runSetCommand(session, set, { command: 'drain', reason });
  const { starting, idle, busy, draining } = status.runners;
  return {
    line: `${name}: ${countText(starting + idle + busy + draining)} to drain; running jobs may finish, then the set ends`,
    status,
  };
}

/**
 * Returns the status of a set.
 * @throws CliError if no worker answers
 */
async function statusOf(session: Session, workflowId: string): Promise<RunnerSetStatus> {
  const status = await queryAdmittedSet(session, workflowId);
  if (status !== undefined) return status;
  throw new CliError(
    'failed',
    `set ${nameOf(workflowId)}: no worker answered within 3 s; nothing was done. Check that a worker runs ("holdfast worker")`,
  );
}
