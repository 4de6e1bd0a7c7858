/** What a runner can be told, and asked. */
import { setHandler } from '@temporalio/workflow';
import { cancelSignal, ciEventSignal, drainUpdate, extendDeadlineUpdate, podStateSignal, statusQuery, type RunnerPhase } from '../../core/contract/index.ts';
import { readCancelRequest, readDrainRequest } from '../../core/domain/cancellation.ts';
import { formatDuration, parseDuration } from '../../core/domain/duration.ts';
import type { RunnerLife } from './life.ts';

const LEAVING: ReadonlySet<RunnerPhase> = new Set(['TearingDown', 'Gone']);

/** Sets the handlers of updates. Before anything is awaited: an update that finds no handler is refused by the SDK, not kept as a signal is. */
export function takeUpdates(life: RunnerLife): void {
  setHandler(
    drainUpdate,
    (body?: { reason?: string }) => {
      life.requestCancel(readDrainRequest(body));
      return { accepted: true as const, phase: life.phase };
    },
    {
      description: 'Retire this runner in good order: its job may finish',
      validator: (_body?: { reason?: string }) => {
        if (LEAVING.has(life.phase)) throw new Error(`the runner is ${life.phase} already`);
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    ({ by }) => {
      // Two at once were each within the cap.
      life.runner.jobDeadline = Math.min((life.runner.jobDeadline ?? Date.now()) + (parseDuration(by) ?? 0), life.latestDeadlineMs);
      return { jobDeadline: new Date(life.runner.jobDeadline).toISOString() };
    },
    {
      description: "Extend the running job's deadline. Body: {by: \"30m\"}",
      validator: (body) => {
        const byMs = parseDuration(String(body?.by)) ?? 0;
        if (byMs <= 0) throw new Error('by: is not a duration; write for example "30m"');
        if (life.runner.jobDeadline === undefined) throw new Error('the runner has no job whose deadline could be extended');
        if (life.spec.pod.supervision.timeoutMs !== undefined && life.runner.pod?.online !== undefined) throw new Error('the timeout of a plain command is kept in its pod, and cannot be extended');
        const leftMs = life.latestDeadlineMs - life.runner.jobDeadline;
        if (byMs > leftMs) throw new Error(`by: at most ${formatDuration(leftMs)} more: the cap of ${formatDuration(life.spec.jobTimeoutCapMs)} for one job is the worker's (jobTimeoutCap in HOLDFAST_TIMEOUTS), of the day on which this life began`);
      },
    },
  );
}

/** Sets the handlers of signals and the query, which may come only once the runner is admitted: until then Temporal keeps them. */
export function takeSignals(life: RunnerLife): void {
  setHandler(cancelSignal, (body) => life.requestCancel(readCancelRequest(body)), { description: 'End this runner. Body: "reason" or {reason, mode: "drain"|"stop"|"force"}' });
  setHandler(ciEventSignal, (event) => life.onCiEvent(event), { description: "A job event from the CI server's webhook (a hint)" });
  setHandler(podStateSignal, (event) => life.onPodState(event), { description: 'idle or busy, as the pod itself says (a hint)' });
  setHandler(statusQuery, () => life.status(), { description: 'Phase, pod, node, job, and what it waits for' });
}
