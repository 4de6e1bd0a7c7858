import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { FINDING_KINDS, type SweepReport } from '../../../core/contract/index.ts';
import { createSweepMetrics } from '../../../worker/process/sweepMetrics.ts';

const none = { found: 0, marked: 0, repaired: 0, failed: 0 };
const report = (more: Partial<SweepReport>): SweepReport => ({
  location: 'p', at: '', tookMs: 1, dryRun: false, examined: {}, incompleteLists: [], skippedLists: [], counts: Object.fromEntries(FINDING_KINDS.map((kind) => [kind, none])) as SweepReport['counts'], skipped: {}, findings: [], omittedFindings: 0, marks: [], ...more,
}); // prettier-ignore

test('counts sweeps by outcome, findings by kind, and skipped objects by reason', async () => {
  const registry = new Registry();
  const swept = createSweepMetrics(registry);
  swept(
    report({
      counts: {
        ...report({}).counts,
        orphaned_pod: { found: 3, marked: 1, repaired: 1, failed: 1 },
      },
      skipped: { in_transition: 2, on_hold: 1 },
    }),
  );
  swept(
    report({
      counts: {
        ...report({}).counts,
        orphaned_pod: { found: 1, marked: 0, repaired: 1, failed: 0 },
      },
      skipped: { on_hold: 1 },
    }),
  );
  swept(report({ dryRun: true }));
  swept(report({ dryRun: true, aborted: 'too many' }));
  swept(report({ aborted: 'too many', incompleteLists: [{ list: 'pods', reason: 'x' }] }));
  const lines = (await registry.metrics())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines.sort()).toEqual([
    'holdfast_sweep_findings_total{kind="orphaned_pod",status="failed"} 1',
    'holdfast_sweep_findings_total{kind="orphaned_pod",status="found"} 4',
    'holdfast_sweep_findings_total{kind="orphaned_pod",status="marked"} 1',
    'holdfast_sweep_findings_total{kind="orphaned_pod",status="repaired"} 2',
    'holdfast_sweep_skipped_total{reason="in_transition"} 2',
    'holdfast_sweep_skipped_total{reason="on_hold"} 2',
    'holdfast_sweeps_total{result="aborted"} 1',
    'holdfast_sweeps_total{result="completed"} 2',
    'holdfast_sweeps_total{result="dry_run"} 1',
    'holdfast_sweeps_total{result="incomplete"} 1',
  ]);
});
