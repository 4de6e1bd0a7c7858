/** Metrics of the findings and repairs of sweeps, counted from their reports. */
import { Counter, type Registry } from 'prom-client';
import { FINDING_KINDS, type SweepReport } from '../../core/contract/index.ts';

/**
 * Registers the metrics.
 * @returns the function that counts a report
 */
export function createSweepMetrics(registry: Registry): (report: SweepReport) => void {
  const registers = [registry];
  const sweeps = new Counter({
    name: 'holdfast_sweeps_total',
    help: 'Sweeps by result: completed, aborted, incomplete (a list could not be read) or dry_run',
    labelNames: ['result'],
    registers,
  });
  const items = new Counter({
    name: 'holdfast_sweep_findings_total',
    help: 'Findings of sweeps of this worker, by kind. An object that is marked, and repaired by the next sweep, counts twice',
    labelNames: ['kind', 'status'],
    registers,
  });
  const skipped = new Counter({
    name: 'holdfast_sweep_skipped_total',
    help: 'Objects that sweeps of this worker skipped, by reason',
    labelNames: ['reason'],
    registers,
  });
  return (report) => {
    sweeps.inc({ result: resultOf(report) });
    for (const kind of FINDING_KINDS)
      for (const [status, count] of Object.entries(report.counts[kind]))
        if (count > 0) items.inc({ kind, status }, count);
    for (const [reason, count] of Object.entries(report.skipped)) skipped.inc({ reason }, count);
  };
}

function resultOf({ incompleteLists, aborted, dryRun }: SweepReport): string {
  if (incompleteLists.length > 0) return 'incomplete';
  if (aborted !== undefined) return 'aborted';
  return dryRun ? 'dry_run' : 'completed';
}
