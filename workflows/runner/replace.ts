/** Between a runner that was lost and the one that takes its place. */
import { condition } from '@temporalio/workflow';
import { formatDuration } from '../../core/domain/duration.ts';
import { countReplacement } from '../shared/metrics.ts';
import type { RunnerState } from './state.ts';
import type { VerdictDecision } from './verdict.ts';

/** A life may lose an idle runner every few minutes for weeks: the oldest are forgotten. */
const MAX_REPLACED = 60;

/** Waits, and makes room for the next runner. A cancel that comes meanwhile leaves the life without one. */
export async function replaceRunner(
  life: RunnerState,
  { cause, afterMs, message }: Extract<VerdictDecision, { kind: 'replace' }>,
): Promise<void> {
  const lost = life.runnerName;
  life.setWaitReason(message, Date.now() + afterMs);
  if (afterMs > 0)
    await condition(() => life.cancel !== undefined, afterMs, {
      summary: `${formatDuration(afterMs)} before another runner takes its place`,
    });
  if (life.cancel !== undefined) return;
  life.replaceRunner();
  countReplacement(cause);
  life.replacements.push({ runnerName: lost, cause, replacedBy: '' });
  if (life.replacements.length > MAX_REPLACED) life.replacements.shift();
}
