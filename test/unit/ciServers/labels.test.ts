import { expect, test } from '@jest/globals';
import {
  normalizeLabels,
  normalizeRunnerLabels,
} from '../../../activities/ciServers/normalizeLabels.ts';

test.each<[labels: string[], job: string[], runner: string[]]>([
  [[], [], ['self-hosted']],
  [
    ['linux', 'x64'],
    ['linux', 'x64'],
    ['linux', 'x64', 'self-hosted'],
  ],
  [['Linux', 'LINUX'], ['linux'], ['linux', 'self-hosted']],
  [
    ['self-hosted', 'gpu'],
    ['self-hosted', 'gpu'],
    ['self-hosted', 'gpu'],
  ],
  [['SELF-HOSTED'], ['self-hosted'], ['self-hosted']],
])('GitHub compares the labels %j of a job as %j, and of a runner as %j', (labels, job, runner) => {
  expect([normalizeLabels('github', labels), normalizeRunnerLabels('github', labels)]).toEqual([
    job,
    runner,
  ]);
});
