/** The replay of the recorded histories fails when a workflow does something else than it did. */
import { describe, expect, test } from '@jest/globals';
import { CHANGES, bundleChanged } from './changedWorkflows.ts';
import { readHistories } from '../histories.ts';
import { replayAll } from '../replayAll.ts';

const histories = readHistories();

describe('the replay detects an incompatible change', () => {
  test.each(CHANGES.map((change) => [change.what, change] as const))(
    '%s',
    async (_what, change) => {
      const results = await replayAll(histories, { workflowBundle: await bundleChanged(change) });
      const failed = [...results].flatMap(([file, error]) => (error === undefined ? [] : [file]));
      const expected = histories
        .filter((history) => change.breaks(history))
        .map(({ file }) => file);
      expect(expected.length).toBeGreaterThan(3);
      expect(failed).toEqual(expected);
    },
  );
});
