import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { FINDING_KINDS, type SweepReport } from '../../../core/contract/index.ts';
import { createSweepMetrics } from '../../../worker/process/sweepMetrics.ts';

const none = { found: 0, marked: 0, repaired: 0, failed: 0 };
const report = (more: Partial<SweepReport>): SweepReport => ({
  place: 'p', at: '', tookMs: 1, dryRun: false, lookedAt: {}, incomplete: [], unseen: [], counts: Object.fromEntries(FINDING_KINDS.map((kind) => [kind, none])) as SweepReport['counts'], skipped: {}, items: [], moreItems: 0, marks: [], ...more,
}); // prettier-ignore

test('counts sweeps by how they went, findings by kind, and what was left alone by reason', async () => {
  const registry = new Registry();
  const swept = createSweepMetrics(registry);
  swept(
    report({
      counts: {
        ...report({}).counts,
        'orphaned pod': { found: 3, marked: 1, repaired: 1, failed: 1 },
      },
      skipped: { 'mid-flight': 2, held: 1 },
    }),
  );
  swept(
    report({
      counts: {
        ...report({}).counts,
        'orphaned pod': { found: 1, marked: 0, repaired: 1, failed: 0 },
      },
      skipped: { held: 1 },
    }),
  );
  swept(report({ dryRun: true }));
  swept(report({ dryRun: true, stopped: 'too many' }));
  swept(report({ stopped: 'too many', incomplete: [{ list: 'pods', why: 'x' }] }));
  const lines = (await registry.metrics())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines.sort()).toEqual([
    'holdfast_sweep_items_total{kind="orphaned_pod",done="failed"} 1',
    'holdfast_sweep_items_total{kind="orphaned_pod",done="found"} 4',
    'holdfast_sweep_items_total{kind="orphaned_pod",done="marked"} 1',
    'holdfast_sweep_items_total{kind="orphaned_pod",done="repaired"} 2',
    'holdfast_sweep_skipped_total{reason="held"} 2',
    'holdfast_sweep_skipped_total{reason="mid_flight"} 2',
    'holdfast_sweeps_total{result="done"} 2',
    'holdfast_sweeps_total{result="dry_run"} 1',
    'holdfast_sweeps_total{result="incomplete"} 1',
    'holdfast_sweeps_total{result="stopped"} 1',
  ]);
});
