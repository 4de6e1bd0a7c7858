import {
  FINDING_KINDS,
  type SweepCounts,
  type SweepReport,
  type FindingKind,
} from '../../core/contract/index.ts';

/** A report that found nothing, with these changes. */
export function sweepReport({
  counts = {},
  ...more
}: Partial<Omit<SweepReport, 'counts'>> & {
  counts?: Partial<Record<FindingKind, Partial<SweepCounts>>>;
} = {}): SweepReport {
  const none: SweepCounts = { found: 0, marked: 0, repaired: 0, failed: 0 };
  return {
    location: 'kubernetes/c/holdfast/ci',
    at: '2026-01-01T00:00:00.000Z',
    tookMs: 1_200,
    dryRun: false,
    examined: { runners: 120, pods: 119 },
    incompleteLists: [],
    skippedLists: [],
    skipped: {},
    findings: [],
    omittedFindings: 0,
    marks: [],
    ...more,
    counts: Object.fromEntries(
      FINDING_KINDS.map((kind) => [kind, { ...none, ...counts[kind] }]),
    ) as SweepReport['counts'],
  };
}
