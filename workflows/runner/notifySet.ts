/**
 * Notifies the set that a runner belongs to. A set that no longer exists, or has no room for the
 * event, does not affect the runner.
 */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { log, workflowInfo } from '@temporalio/workflow';
import type { SetNotification } from '../../core/activities/index.ts';
import {
  SET_RUNNER_MEMO,
  type RunnerRef,
  type RunnerResult,
  type SetRunnerMemo,
} from '../../core/contract/index.ts';
import { notifySet } from '../shared/activityProxies.ts';
import type { RunnerState } from './state.ts';

type End = Pick<RunnerResult, 'outcome' | 'cause'> & Partial<Pick<RunnerResult, 'message'>>;

/** Maximum length of a message to a set (characters). A batch of messages is one signal. */
const MAX_MESSAGE = 500;

/** Returns the memo that the set attached to this workflow when starting it. */
export function setMemo(): Partial<SetRunnerMemo> {
  return (workflowInfo().memo?.[SET_RUNNER_MEMO] ?? {}) as Partial<SetRunnerMemo>;
}

/**
 * Returns the event that the runner is online, once per workflow, however often its runner is
 * replaced. The caller must send it.
 */
export function onlineNotification(state: RunnerState): SetNotification | undefined {
  const { set } = state.spec;
  if (set === undefined || state.notifiedOnline) return undefined;
  state.notifiedOnline = true;
  return { set, event: { kind: 'online', ...eventBase(state) } };
}

/**
 * Notifies the runner's set that it is online. At most once per workflow; does nothing without a
 * set.
 */
export async function notifySetOnline(state: RunnerState): Promise<void> {
  await send(onlineNotification(state));
}

/**
 * Notifies the set that a job has started. At most once per workflow, and only if the set asked for
 * it: most sets receive job events.
 */
export async function notifySetBusy(state: RunnerState): Promise<void> {
  const { set } = state.spec;
  if (set === undefined || setMemo().notifyBusy !== true || state.notifiedBusy === true) return;
  state.notifiedBusy = true;
  await send({ set, event: { kind: 'busy', ...eventBase(state) } });
}

/**
 * Notifies the set that the workflow has ended, unless the teardown has already done so. This is
 * the last step of the workflow.
 */
export async function notifySetEnded(state: RunnerState, end: End): Promise<void> {
  if (state.notifiedEnded !== true) await send(endedNotification(state, end));
}

/** Returns the event for the runner's set that the runner has ended, or undefined without a set. */
export function endedNotification(
  state: RunnerState,
  { outcome, cause, message }: End,
): SetNotification | undefined {
  const { runner, spec, verdictCancel } = state;
  const { set } = spec;
  if (set === undefined) return undefined;
  // An ephemeral runner that succeeded by itself has run its job, even if no event or probe
  // reported it.
  const ranJob =
    state.hadJob || (spec.ephemeral && outcome === 'succeeded' && verdictCancel === undefined);
  return {
    set,
    ...omitUndefined({ mayWait: setMemo().endMayWait }),
    event: {
      kind: 'ended',
      ...eventBase(state),
      outcome,
      ...omitUndefined({
        cause,
        message:
          outcome === 'failed' || outcome === 'errored'
            ? message?.slice(0, MAX_MESSAGE)
            : undefined,
      }),
      wasOnline: state.notifiedOnline || runner.online || ranJob,
      ranJob,
    },
  };
}

function eventBase({ workflowId, runnerName }: RunnerState): RunnerRef {
  return { workflowId, runnerName };
}

async function send(notification: SetNotification | undefined): Promise<void> {
  if (notification !== undefined)
    await notifyBestEffort({ set: notification.set }, async () => await notifySet(notification));
}

/** Sends a notification that the recipient does not depend on. Failures are logged only. */
export async function notifyBestEffort(
  whom: { readonly set: string } | { readonly job: string },
  send: () => Promise<void>,
): Promise<void> {
  try {
    await send();
  } catch (error) {
    log.info('A notification was not delivered; its receiver finds the change itself', {
      ...whom,
      why: String(error),
    });
  }
}
