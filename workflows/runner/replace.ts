/** Prepares the replacement of a lost runner. */
import { condition } from '@temporalio/workflow';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { countReplacement } from '../shared/metrics.ts';
import type { RunnerState } from './state.ts';
import type { VerdictDecision } from './verdict.ts';

/**
 * Maximum number of recorded replacements. A workflow may lose an idle runner every few minutes for
 * weeks, so the oldest entries are dropped.
 */
const MAX_REPLACED = 60;

/**
 * Waits for the delay and starts the next attempt. If a cancel arrives meanwhile, there is no next
 * attempt.
 *
 * @param rerunWorkflowId - id of the workflow that reruns the lost job, if there is one
 */
export async function replaceRunner(
  state: RunnerState,
  { cause, afterMs, message }: Extract<VerdictDecision, { kind: 'replace' }>,
  rerunWorkflowId?: string,
): Promise<void> {
  const lost = state.runnerName;
  state.setWaitReason(message, Date.now() + afterMs);
  if (afterMs > 0)
    await condition(() => state.cancel !== undefined, afterMs, {
      summary: `Wait ${formatDuration(afterMs)} before the replacement`,
    });
  if (state.cancel !== undefined) return;
  state.replaceRunner();
  countReplacement(cause);
  state.replacements.push({
    runnerName: lost,
    cause,
    replacedBy: '',
    ...omitUndefined({ rerunWorkflowId }),
  });
  if (state.replacements.length > MAX_REPLACED) state.replacements.shift();
}
