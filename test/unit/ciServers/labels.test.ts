import { expect, test } from '@jest/globals';
import { normalizeLabels } from '../../../activities/ciServers/normalizeLabels.ts';

test.each<[labels: string[], normalized: string[]]>([
  [[], []],
  [
    ['linux', 'x64'],
    ['linux', 'x64'],
  ],
  [['Linux', 'LINUX'], ['linux']],
  [['self-hosted', 'gpu'], ['gpu']],
  [['SELF-HOSTED'], []],
])('GitHub compares the labels %j as %j', (labels, normalized) => {
  expect(normalizeLabels('github', labels)).toEqual(normalized);
});
