/** What sweeps have found and done, counted from their reports. */
import { Counter, type Registry } from 'prom-client';
import { FINDING_KINDS, type SweepReport } from '../../core/contract/index.ts';

/** @returns what counts a report */
export function createSweepMetrics(registry: Registry): (report: SweepReport) => void {
  const registers = [registry];
  const sweeps = new Counter({
    name: 'holdfast_sweeps_total',
    help: 'Sweeps by how they went: done, stopped, incomplete (a list could not be had) or dry_run',
    labelNames: ['result'],
    registers,
  });
  const items = new Counter({
    name: 'holdfast_sweep_items_total',
    help: 'What sweeps of this worker found, by kind; a thing that is marked, and repaired by the next sweep, is found twice',
    labelNames: ['kind', 'done'],
    registers,
  });
  const skipped = new Counter({
    name: 'holdfast_sweep_skipped_total',
    help: 'What sweeps of this worker left alone, by reason',
    labelNames: ['reason'],
    registers,
  });
  return (report) => {
    sweeps.inc({ result: resultOf(report) });
    for (const kind of FINDING_KINDS)
      for (const [done, count] of Object.entries(report.counts[kind]))
        if (count > 0) items.inc({ kind: word(kind), done }, count);
    for (const [reason, count] of Object.entries(report.skipped))
      skipped.inc({ reason: word(reason) }, count);
  };
}

function resultOf({ incomplete, stopped, dryRun }: SweepReport): string {
  if (incomplete.length > 0) return 'incomplete';
  if (stopped !== undefined) return 'stopped';
  return dryRun ? 'dry_run' : 'done';
}

const word = (text: string): string => text.replaceAll(/[^a-z]+/g, '_');
