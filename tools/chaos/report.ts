import type { AskedWhy } from './questions.ts';
import type { ChaosReport } from './run.ts';

/** Timelines at most: the first of them show what the others do, too. */
const MAX_TIMELINES = 5;

/** The report for people. Pure. */
export function reportLines({
  seed,
  lives,
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
    `seed ${seed}: ${lives} runners, ${jobs} jobs, ${kinds.reduce((sum, [, count]) => sum + count, 0)} faults`,
    `all waits were over ${settledMs.waits} ms after the last fault; at rest ${settledMs.rest} ms after the last job; gone after another ${settledMs.gone} ms (time limits x${slowdown} for the load)`,
    ...whyLines(why),
    violations.length === 0 ? 'no violations' : `${violations.length} VIOLATIONS`,
    ...violations.flatMap(({ rule, message, life, timeline }, index) => [
      '',
      `${index + 1}. ${rule}: ${message}${life === undefined ? '' : ` (${life})`}`,
      ...(index < MAX_TIMELINES ? (timeline ?? []) : []),
    ]),
  ];
}

function whyLines({ asked, named, calm, others }: AskedWhy): string[] {
  if (asked + calm === 0) return ['no job of a set waited for 30 s'];
  const share = asked === 0 ? 'none' : `${((100 * named) / asked).toFixed(1)} %`;
  return [
    `"holdfast why" named a fault that was on in ${named} of ${asked} answers (${share}); ${calm} were asked for while none was`,
    ...Object.entries(others).map(([what, count]) => `  not named, x${count}: ${what}`),
  ];
}
