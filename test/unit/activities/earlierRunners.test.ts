import { expect, test } from '@jest/globals';
import { runnerHash } from '../../../activities/compute/naming.ts';
import { earlierRunnerCheck } from '../../../activities/sweep/earlierRunners.ts';
import { pod } from '../../support/sweptObjects.ts';

const identity = { workflowId: 'runner-w', firstRunId: 'f', attempt: 2 };
const first = `w-${runnerHash(identity)}`;

test('finds a runner only if its running workflow has replaced it, and its pod is deleted', () => {
  const isEarlier = earlierRunnerCheck([`${first}-r3`], [pod({}, { identity })]);
  expect(isEarlier(first)).toBe(true);
  expect(isEarlier(`${first}-r2`)).toBe(false); // its pod is there
  expect(isEarlier(`${first}-r3`)).toBe(false);
  expect(isEarlier(`${first}-r4`)).toBe(false);
  expect(isEarlier('w-0123456789')).toBe(false);
});

test('visibility with the name of an earlier runner', () => {
  const isEarlier = earlierRunnerCheck([first], []);
  expect([first, `${first}-r2`].map(isEarlier)).toEqual([false, false]);
});
