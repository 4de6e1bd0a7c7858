import type { WhyStatistics } from './questions.ts';
import type { ChaosReport } from './run.ts';

/** Maximum number of timelines. The first ones usually show the cause of the others. */
const MAX_TIMELINES = 5;

/** Formats the report. Pure. */
export function reportLines({
  seed,
  runners,
  jobs,
  faults,
  settledMs,
  slowdown,
  violations,
  why,
}: ChaosReport): string[] {
  const kinds = Object.entries(faults).toSorted(([a], [b]) => (a < b ? -1 : 1)); // prettier-ignore
  return [
    ...kinds.map(([kind, count]) => `${kind.padEnd(24)} ${String(count).padStart(4)}`),
    '',
    `seed ${seed}: ${runners} runners, ${jobs} jobs, ${kinds.reduce((sum, [, count]) => sum + count, 0)} faults`,
    `all waits ended ${settledMs.waits} ms after the last fault, and the sets had their desired size ${settledMs.rest} ms after the last job; everything was deleted after another ${settledMs.deleted} ms (time limits x${slowdown} for the load)`,
    ...whyLines(why),
    violations.length === 0 ? 'no violations' : `${violations.length} VIOLATIONS`,
    ...violations.flatMap(({ rule, message, workflowId, timeline }, index) => [
      '',
      `${index + 1}. ${rule}: ${message}${workflowId === undefined ? '' : ` (${workflowId})`}`,
      ...(index < MAX_TIMELINES ? (timeline ?? []) : []),
    ]),
  ];
}

function whyLines({ judged, correct, notJudged, incorrect }: WhyStatistics): string[] {
  if (judged + notJudged === 0) return ['no job of a set waited for 30 s'];
  const share = judged === 0 ? 'none' : `${((100 * correct) / judged).toFixed(1)} %`;
  return [
    `"holdfast why" named an active fault in ${correct} of ${judged} answers (${share}); ${notJudged} answers without such a fault`,
    ...Object.entries(incorrect).map(([answer, count]) => `  not named, x${count}: ${answer}`),
  ];
}
