/** What a runner tells the set it belongs to. A set that is gone, or has no room for the news, costs the runner nothing. */
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

/** Limit of a message to a set: a batch of them is one signal. */
const MAX_MESSAGE = 500;

/** What its set has noted at this life, as it started it. */
export function setMemo(): Partial<SetRunnerMemo> {
  return (workflowInfo().memo?.[SET_RUNNER_MEMO] ?? {}) as Partial<SetRunnerMemo>;
}

/** Once in a life, however often its runner is replaced: whoever gets the word has to tell it. */
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
  await tell(onlineNotification(state));
}

/** Once in a life, and only where the set asks for it: most sets hear of jobs by their events. */
export async function notifySetBusy(state: RunnerState): Promise<void> {
  const { set } = state.spec;
  if (set === undefined || setMemo().notifyBusy !== true || state.notifiedBusy === true) return;
  state.notifiedBusy = true;
  await tell({ set, event: { kind: 'busy', ...eventBase(state) } });
}

/** The last thing in a life, unless its tear-down has told it. */
export async function notifySetEnded(state: RunnerState, end: End): Promise<void> {
  if (state.notifiedEnded !== true) await tell(endedNotification(state, end));
}

/** Returns the event for the runner's set that the runner has ended, or undefined without a set. */
export function endedNotification(
  state: RunnerState,
  { outcome, cause, message }: End,
): SetNotification | undefined {
  const { runner, spec, verdictCancel } = state;
  const { set } = spec;
  if (set === undefined) return undefined;
  // An ephemeral runner that succeeded by itself has had its job, although no event or probe may have told of it.
  const ranJob =
    state.hadJob || (spec.ephemeral && outcome === 'succeeded' && verdictCancel === undefined);
  return {
    set,
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

async function tell(word: SetNotification | undefined): Promise<void> {
  if (word !== undefined)
    await notifyBestEffort({ set: word.set }, async () => await notifySet(word));
}

/** Tells news that whoever should hear it can do without. */
export async function notifyBestEffort(
  whom: { readonly set: string } | { readonly job: string },
  tell: () => Promise<void>,
): Promise<void> {
  try {
    await tell();
  } catch (error) {
    log.info('News was not told: who should hear it will see for itself, if it is there', {
      ...whom,
      why: String(error),
    });
  }
}
