import type { ChaosReport } from './run.ts';

/** Timelines at most: the first of them show what the others do, too. */
const MOST_TIMELINES = 5;

/** The report for people. Pure. */
export function reportLines({ seed, lives, jobs, faults, settledMs, violations }: ChaosReport): string[] {
  const kinds = Object.entries(faults).toSorted(([a], [b]) => (a < b ? -1 : 1)); // prettier-ignore
  return [
    ...kinds.map(([kind, count]) => `${kind.padEnd(24)} ${String(count).padStart(4)}`),
    '',
    `seed ${seed}: ${lives} lives, ${jobs} jobs, ${kinds.reduce((sum, [, count]) => sum + count, 0)} faults; after the last one jobs had runners after ${settledMs.jobs} ms, all was at rest after ${settledMs.rest} ms, and gone after ${settledMs.gone} ms`,
    violations.length === 0 ? 'no violations' : `${violations.length} VIOLATIONS`,
    ...violations.flatMap(({ rule, message, life, timeline }, index) => ['', `${index + 1}. ${rule}: ${message}${life === undefined ? '' : ` (${life})`}`, ...(index < MOST_TIMELINES ? (timeline ?? []) : [])]),
  ];
}
