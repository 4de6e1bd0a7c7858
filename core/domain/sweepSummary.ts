/** Summarizes the report of a sweep. Pure. */
import {
  FINDING_KINDS,
  type SweepCounts,
  type SweepOutcome,
  type SweepReport,
} from '../contract/index.ts';

type Counts = Pick<SweepReport, 'counts'>;

/** Returns the outcome of a sweep; see `SWEEP_OUTCOMES`. */
export function sweepOutcome({
  counts,
  dryRun,
  aborted,
}: Counts & Pick<SweepReport, 'dryRun' | 'aborted'>): SweepOutcome {
  const sum = (field: keyof SweepCounts): number =>
    FINDING_KINDS.reduce((total, kind) => total + counts[kind][field], 0);
  if (sum('failed') > 0) return 'failed';
  if (aborted !== undefined) return 'aborted';
  if (dryRun) return sum('found') > 0 ? 'found' : 'clean';
  if (sum('repaired') > 0) return 'repaired';
  return sum('found') > 0 ? 'marked' : 'clean';
}

/**
 * Returns a summary in one line: `2 orphaned_pod (1 marked, 1 repaired), 1 stuck_runner (1 failed);
 * 14 skipped; checked 120 workflows, 119 pods`.
 */
export function sweepSummary({ counts, skipped, aborted, examined, dryRun }: SweepReport): string {
  const findings = FINDING_KINDS.flatMap((kind) =>
    counts[kind].found === 0 ? [] : [finding(kind, counts[kind])],
  );
  const remaining = Object.values(skipped).reduce((sum, count) => sum + count, 0);
  const checked = Object.entries(examined).map(([what, count]) => `${count} ${what}`);
  return [
    ...(aborted === undefined ? [] : [`aborted: ${aborted}`]),
    `${findings.length === 0 ? 'nothing to repair' : findings.join(', ')}${dryRun ? ' (dry run)' : ''}`,
    ...(remaining === 0 ? [] : [`${remaining} skipped`]),
    `checked ${checked.length === 0 ? 'nothing' : checked.join(', ')}`,
  ].join('; ');
}

function finding(kind: string, { found, marked, repaired, failed }: SweepCounts): string {
  const done = Object.entries({ marked, repaired, failed }).flatMap(([what, count]) =>
    count === 0 ? [] : [`${count} ${what}`],
  );
  return `${found} ${kind}${done.length === 0 ? '' : ` (${done.join(', ')})`}`;
}

/** Returns why a sweep changed nothing: its incomplete lists. */
export function incompleteMessage(incomplete: SweepReport['incompleteLists']): string {
  return `nothing was changed, because a list is incomplete: ${incomplete.map(({ list, reason }) => `${list} (${reason})`).join('; ')}`;
}
