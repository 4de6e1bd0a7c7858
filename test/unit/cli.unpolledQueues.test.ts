import { expect, test } from '@jest/globals';
import { hasPolledOfLate } from '../../core/domain/pollers.ts';
import { fixOf } from '../../worker/cli/temporal/unpolledQueues.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');

test.each<[what: string, secondsAgo: number[], polled: boolean]>([
  ['nobody ever', [], false],
  ['one that polls', [0], true],
  ['one in the middle of a long poll', [60], true],
  ['one that Temporal still lists, and that has gone', [120], false],
  ['one that has gone, and another', [200, 5], true],
])('is it polled: %s', (_what, secondsAgo, polled) => {
  expect(hasPolledOfLate(secondsAgo.map((seconds) => NOW - seconds * 1_000), NOW)).toBe(polled);
});

test.each<[queue: string, fix: RegExp]>([
  ['holdfast', /^start a worker with HOLDFAST_TASK_QUEUE=holdfast /],
  ['holdfast-cluster', /^start a worker with HOLDFAST_TASK_QUEUE=holdfast /],
  ['holdfast-ci-ghes', /has the credential "ghes": add it to HOLDFAST_CREDENTIALS/],
])('what makes one poll %s', (queue, fix) => {
  expect(fixOf(queue, 'holdfast')).toMatch(fix);
});
