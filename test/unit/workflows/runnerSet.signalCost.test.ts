/** The CPU time of one event in a large set, which processes events one after the other. */
import { expect, test } from '@jest/globals';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { areDetailsDue } from '../../../workflows/runnerSet/status.ts';
import { MAX_RUNNERS } from '../../../core/input/runnerSetSchema.ts';
import { FIRST_JOB_ID, fullSet } from '../../support/fullSet.ts';

const EVENTS = 60;
/** Three times the measured time. With the details in the UI it would be more than twenty times. */
const MOST_MS = 12;

test('an event alone costs a set of 5,000 busy runners a few milliseconds', () => {
  const state = fullSet();
  let now = state.facts.at;
  const costs: number[] = [];
  for (let index = 0; index < EVENTS; index++) {
    const before = process.cpuUsage();
    now += 100;
    const event = {
      action: 'completed' as const,
      jobId: String(FIRST_JOB_ID + (30_000 + index) * 3),
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: now,
    };
    state.jobReports.onJobEvents([event], now);
    state.updateDemand(now);
    decideSet(state, now);
    const { user, system } = process.cpuUsage(before);
    costs.push((user + system) / 1000);
  }
  expect(state.runners.all()).toHaveLength(MAX_RUNNERS);
  // Otherwise the details would be part of it.
  expect(areDetailsDue(state, now, now + 1)).toBe(false);
  const [least = Infinity] = costs.toSorted((a, b) => a - b);
  const median = costs.toSorted((a, b) => a - b)[EVENTS / 2];
  process.stderr.write(`figures: ms of CPU for an event: least ${least}, median ${median}\n`);
  // The minimum, because other processes only add to it.
  expect(least).toBeLessThan(MOST_MS);
});
