/** Ends everything that runs on a task queue, so that its workers can be removed. */
import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import {
  DEREGISTRATION_WORKFLOW,
  JOB_GROUP_WORKFLOW,
  JOB_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  SCALE_SET_LISTENER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  SET_COMMAND_WORKFLOW,
  SWEEP_WORKFLOW,
  setWorkflowId,
  type JobGroupStatus,
} from '../../core/contract/index.ts';
import { quoteLiteral } from '../../core/domain/visibility.ts';
import { isPaused, OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import { ensureSweepSchedule } from '../../worker/temporal/sweepSchedule.ts';
import { requestStop } from '../runner/stopRunners.ts';
import { requestDeletion } from '../set/setChange.ts';
import type { Session } from '../shared/session.ts';
import { queryStatus } from '../shared/runnerRow.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import { confirm } from '../shared/confirm.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

/** Options of `holdfast decommission`. */
export interface DecommissionOptions {
  /**
   * Whether to skip the confirmation.
   * @default false
   */
  readonly yes?: boolean;
  readonly reason?: string;
  /**
   * Interval between two checks (ms). Visibility may lag, so two checks in a row must find no
   * workflow.
   * @default 2000
   */
  readonly checkMs?: number;
}

/** Running workflow of the task queue. */
interface Running {
  readonly id: string;
  readonly type: string;
  /** Whether it is paused in Temporal, so that it cannot end. */
  readonly paused: boolean;
  /** Workflow IDs of its possible owners: its set, or the job that it is a step of. */
  readonly owners: readonly string[];
}

/** All workflow types of Holdfast, owners first. */
const TYPES = [
  RUNNER_SET_WORKFLOW,
  SCALE_SET_LISTENER_WORKFLOW,
  JOB_GROUP_WORKFLOW,
  JOB_WORKFLOW,
  RUNNER_WORKFLOW,
  DEREGISTRATION_WORKFLOW,
  RERUN_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  SWEEP_WORKFLOW,
];

const AT_ONCE = 10;
/** Maximum number of paused workflows that are named. */
const MAX_NAMED = 10;

/**
 * Ends all workflows of the task queue.
 * @returns the exit status
 * @throws CliError `unreachable`, `usage`
 */
export async function decommission(
  session: Session,
  output: Output,
  { yes, reason = requestedBy(), checkMs = 2_000 }: DecommissionOptions,
): Promise<void> {
  const { taskQueue } = session.settings;
  const found = await runningOn(session, taskQueue);
  if (!yes && found.length > 0)
    await confirm(output, `end everything on the task queue ${taskQueue}: ${summary(found)}`);
  // Delete the Schedule first, because no worker will run the sweeps that it starts.
  const schedule = await session.call(
    async (client) => await ensureSweepSchedule({ client, taskQueue, intervalMs: 0 }),
  );

  const requested = new Map<string, Answer>();
  let reported = '';
  for (
    let running = found, idle = running.length === 0 ? 1 : 0;
    idle < 2;
    idle = running.length === 0 ? idle + 1 : 0
  ) {
    const ids = new Set(running.map(({ id }) => id));
    const mine = running.filter(
      ({ id, owners }) => !requested.has(id) && !owners.some((owner) => ids.has(owner)),
    );
    await pMap(
      mine,
      async (each) => {
        const answer = await requestEnd(session, output, each, reason);
        if (answer !== 'not_yet') requested.set(each.id, answer);
      },
      { concurrency: AT_ONCE },
    );
    const now = summary(running) + pausedText(running);
    if (now !== reported && running.length > 0)
      output.note('waiting', `still running: ${(reported = now)}`);
    await delay(checkMs);
    running = await runningOn(session, taskQueue);
  }
  output.result(
    {
      taskQueue,
      requested: [...requested.keys()].filter((id) => requested.get(id) === 'accepted').toSorted(),
      schedule: schedule === 'deleted' ? 'deleted' : 'none',
    },
    [
      `${taskQueue}: nothing runs${schedule === 'deleted' ? '; the Schedule of the sweep was deleted' : ''}`,
    ],
  );
}

async function runningOn(session: Session, taskQueue: string): Promise<Running[]> {
  const query = `TaskQueue = ${quoteLiteral(taskQueue)} AND ${OPEN_FILTER} AND WorkflowType IN (${TYPES.map((type) => quoteLiteral(type)).join(', ')})`;
  return await session.call(
    async (client) => {
      const running: Running[] = [];
      for await (const {
        workflowId,
        type,
        status,
        parentExecution,
        typedSearchAttributes,
      } of client.workflow.list({ query, pageSize: 1_000 })) {
        // The workflow of a set has this attribute, too, with its own name.
        const set =
          type === RUNNER_WORKFLOW ? typedSearchAttributes.get(SEARCH_ATTRIBUTES.set) : undefined;
        const parent = parentExecution?.workflowId;
        running.push({
          id: workflowId,
          type,
          paused: isPaused(status),
          owners: [
            ...(typeof parent === 'string' ? [parent] : []),
            ...(set === undefined ? [] : [setWorkflowId(set)]),
          ],
        });
      }
      return running;
    },
    { timeoutMs: 60_000 },
  );
}

/**
 * Result of a request to end. `ended`: the workflow had already ended, and visibility may still
 * list it. `not_yet`: it has to be checked again later.
 */
type Answer = 'accepted' | 'ended' | 'not_yet';

/**
 * Requests the end of a workflow. Jobs, removals, commands and sweeps end by themselves, and
 * listeners end with their sets.
 */
async function requestEnd(
  session: Session,
  output: Output,
  { id: workflowId, type }: Running,
  reason: string,
): Promise<Answer> {
  try {
    switch (type) {
      case RUNNER_SET_WORKFLOW: {
        const { note, line } = await requestDeletion(
          session,
          output,
          { workflowId, taskQueue: session.settings.taskQueue },
          { yes: true, reason },
        );
        output.note('set', note === undefined ? line : `${workflowId}: ${note}`);
        return 'accepted';
      }
      case RUNNER_WORKFLOW:
        output.note(
          'runner',
          `${workflowId}: ${(await requestStop(session, workflowId, { action: 'drain', mode: 'drain', reason })) ?? 'drain accepted'}`,
        );
        return 'accepted';
      case JOB_GROUP_WORKFLOW:
        return await endIdleGroup(session, workflowId);
      default:
        return 'not_yet';
    }
  } catch (error) {
    if (!(error instanceof CliError && error.code === 'not_found')) throw error;
    return 'ended';
  }
}

/**
 * Ends a job group that has no work left. Otherwise it would wait a week for another version.
 * @returns `not_yet` if it has work left, or did not answer: it is paused, or no worker runs
 */
async function endIdleGroup(session: Session, workflowId: string): Promise<Answer> {
  const status = await queryStatus<JobGroupStatus>(session, workflowId);
  if (status === undefined || status.running !== undefined || status.queued) return 'not_yet';
  await session.call(async (client) => await client.workflow.getHandle(workflowId).cancel(), {
    workflowId,
  });
  return 'accepted';
}

/** Prints the workflows that cannot end before they are unpaused. */
function pausedText(running: readonly Running[]): string {
  const ids = running.filter(({ paused }) => paused).map(({ id }) => id);
  return ids.length === 0
    ? ''
    : `; ${ids.length} are paused in Temporal and go on only after "temporal workflow unpause": ${ids.slice(0, MAX_NAMED).join(', ')}${ids.length > MAX_NAMED ? ', ...' : ''}`;
}

/** Formats the counts by type: `2 runnerSet, 14 runner`. */
const summary = (running: readonly Running[]): string =>
  TYPES.map((type) => [running.filter((each) => each.type === type).length, type] as const)
    .filter(([count]) => count > 0)
    .map(([count, type]) => `${count} ${type}`)
    .join(', ');
