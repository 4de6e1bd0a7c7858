import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { registerSetMetrics } from '../../../worker/webhook/setMetrics.ts';
import { statusOf } from '../../support/demandSets.ts';

test('counters of a set are shown as it reports them, after every query, and only while it reports them', async () => {
  const registry = new Registry();
  let statuses = [
    statusOf('linux', {
      desired: 3,
      jobs: { queued: 1, running: 2, startedTotal: 7, completedTotal: 5 },
    }),
  ];
  registerSetMetrics(registry, async () => statuses);
  await registry.metrics();
  const scraped = await registry.metrics();
  for (const [name, type, value] of [
    ['assigned_jobs', 'gauge', 3],
    ['desired_runners', 'gauge', 3],
    ['start_blocked', 'gauge', 0],
    ['started_jobs_total', 'counter', 7],
    ['completed_jobs_total', 'counter', 5],
  ]) {
    expect(scraped).toContain(
      `# TYPE holdfast_set_${name} ${type}\nholdfast_set_${name}{set="linux",scope="acme"} ${value}\n`,
    );
  }
  statuses = [];
  expect(await registry.metrics()).not.toContain('linux');
});
