/** Handlers of the signals, updates and the query of a runner. */
import { setHandler } from '@temporalio/workflow';
import {
  cancelSignal,
  jobEventSignal,
  replaceIdleSignal,
  drainUpdate,
  extendDeadlineUpdate,
  podStateSignal,
  statusQuery,
  type CancelRequest,
  type RunnerJobEvent,
  type ReplaceIdleRequest,
  type PodStateEvent,
  type RunnerPhase,
} from '../../core/contract/index.ts';
import { parseCancelRequest, parseDrainRequest } from '../../core/domain/cancellation.ts';
import { parseCiId } from '../../core/domain/ciId.ts';
import { formatDuration, parseDuration } from '../../core/domain/duration.ts';
import { stripControlCharacters, truncate } from '../../core/domain/displayText.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { isRejectedPayload } from '../../core/domain/rejectedPayload.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { latestDeadlineMs } from './jobDeadline.ts';
import { onJobEvent, onPodState } from './runnerActivity.ts';
import type { RunnerState } from './state.ts';

/** Maximum length of a reason (characters). */
const MAX_REASON = 500;
const LEAVING: ReadonlySet<RunnerPhase> = new Set(['TearingDown', 'Gone']);

/**
 * Registers the handlers of updates. Must be called before anything is awaited: the SDK rejects an
 * update without a handler, whereas it buffers a signal.
 */
export function registerUpdateHandlers(state: RunnerState): void {
  setHandler(
    drainUpdate,
    (body?: { reason?: string }) => {
      state.requestCancel(parseDrainRequest(body));
      return { accepted: true as const, phase: state.phase };
    },
    {
      description: 'Drain this runner: its job may finish',
      validator: (body?: { reason?: string }) => {
        if (isRejectedPayload(body)) throw new Error(body);
        if (LEAVING.has(state.phase)) throw new Error(`the runner is already ${state.phase}`);
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    ({ by }) => {
      // Two concurrent updates may each have been validated against the cap.
      state.runner.jobDeadline = Math.min(
        (state.runner.jobDeadline ?? Date.now()) + (parseDuration(by) ?? 0),
        latestDeadlineMs(state),
      );
      return { jobDeadline: isoTime(state.runner.jobDeadline) };
    },
    {
      description: 'Extend the timeout of the running job. Body: {by: "30m"}',
      validator: (body) => {
        const byMs = parseDuration(String(body?.by)) ?? 0;
        if (byMs <= 0) throw new Error('by: must be a positive duration, for example "30m"');
        if (state.runner.jobDeadline === undefined)
          throw new Error('the runner has no running job');
        if (
          state.spec.pod.supervision.timeoutMs !== undefined &&
          state.runner.pod?.online !== undefined
        )
          throw new Error(
            'the timeout of a plain command is fixed in its pod and cannot be extended',
          );
        const remainingMs = latestDeadlineMs(state) - state.runner.jobDeadline;
        if (byMs > remainingMs)
          throw new Error(
            `by: must be at most ${formatDuration(remainingMs)}; a job may run for ${formatDuration(state.spec.pod.jobTimeoutCapMs)} (jobTimeoutCap in HOLDFAST_TIMEOUTS of the worker that admitted this runner)`,
          );
      },
    },
  );
}

/**
 * Registers the handlers of signals, which may run only once the runner is admitted. Until then the
 * SDK buffers them.
 */
export function registerSignalHandlers(state: RunnerState): void {
  setHandler(cancelSignal, (body) => onCancel(state, body), {
    description: 'Cancel this runner. Body: "reason" or {reason, mode: "drain"|"stop"|"force"}',
  });
  setHandler(
    jobEventSignal,
    (body: unknown) => {
      const event = readJobEvent(body);
      if (event !== undefined) onJobEvent(state, event);
    },
    {
      description: 'Job event from the webhook',
    },
  );
  setHandler(
    podStateSignal,
    (event: unknown) => void (isPodState(event) && onPodState(state, event)),
    { description: 'Idle or busy, as reported by the pod' },
  );
  setHandler(
    replaceIdleSignal,
    (event: unknown) => void (isObject(event) && replaceIdle(state, event)),
    {
      description: 'Replace this idle runner. Body: {runnerName, reason}',
    },
  );
}

function onCancel(state: RunnerState, body: CancelRequest | string | undefined): void {
  if (!isRejectedPayload(body)) state.requestCancel(parseCancelRequest(body));
}

/**
 * Registers the handler of the status query, which also answers while the input is being validated.
 */
export function registerStatusQuery(state: RunnerState): void {
  setHandler(statusQuery, () => state.status(), {
    description: 'Phase, pod, node, job and wait of the runner',
  });
}

/**
 * Marks an idle runner for replacement. Ignores a request that names another runner, or that arrives
 * when the runner is no longer idle.
 */
function replaceIdle(
  { runner, phase, runnerName }: RunnerState,
  { runnerName: requested, reason }: Partial<Record<keyof ReplaceIdleRequest, unknown>>,
): void {
  if (requested !== runnerName || phase !== 'Idle' || runner.busySince !== undefined) return;
  runner.suspected ??= {
    cause: 'agent_lost',
    why: `The runner hangs (${truncate(stripControlCharacters(typeof reason === 'string' ? reason : 'no reason given'), MAX_REASON)})`,
  };
}

const ACTIONS: readonly unknown[] = [
  'queued',
  'in_progress',
  'completed',
] satisfies RunnerJobEvent['action'][];
const isOptional = (type: 'string' | 'number', value: unknown): boolean =>
  value === undefined || typeof value === type;

/**
 * Parses a job event. Returns `undefined` if it is invalid: a sender may put anything into a signal,
 * and a handler that throws blocks the workflow permanently.
 */
function readJobEvent(body: unknown): RunnerJobEvent | undefined {
  if (!isObject(body)) return undefined;
  const [jobId, runnerId] = [parseCiId(body['jobId']), parseCiId(body['runnerId'])];
  if (jobId === undefined || (runnerId === undefined && body['runnerId'] !== undefined))
    return undefined;
  return isJobEvent(body) ? { ...body, jobId, ...omitUndefined({ runnerId }) } : undefined;
}

/** Whether all fields except the IDs are valid. */
const isJobEvent = (body: Record<string, unknown>): body is RunnerJobEvent & typeof body =>
  ACTIONS.includes(body['action']) &&
  ['runnerName', 'repository', 'jobName', 'conclusion'].every((field) =>
    isOptional('string', body[field]),
  ) &&
  isOptional('number', body['runAttempt']) &&
  (body['at'] === undefined || isTime(body['at']));

const isPodState = (event: unknown): event is PodStateEvent =>
  isObject(event) &&
  typeof event['uid'] === 'string' &&
  (event['state'] === 'idle' || event['state'] === 'busy');
