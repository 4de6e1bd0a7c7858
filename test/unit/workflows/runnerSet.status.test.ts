/** Size of what a set answers and shows: Temporal rejects 2 MiB. */
import { describe, expect, test } from '@jest/globals';
import { MAX_HOLDS } from '../../../core/domain/scale.ts';
import { MAX_RUNNERS } from '../../../core/input/runnerSet.ts';
import { setDetails, setStatus } from '../../../workflows/runnerSet/status.ts';
import { fullSet } from '../../support/fullSet.ts';

const MIB = 1024 * 1024;
const PAGE = 2_000;

describe('the status of a set with everything at its limit', () => {
  const state = fullSet();
  const now = state.facts.at;
  const sizeOf = (value: unknown): number => JSON.stringify(value).length;

  test('is less than half of what Temporal takes, which encryption needs a third of', () => {
    expect(state.holds.size).toBe(MAX_HOLDS);
    expect(sizeOf(setStatus(state, now))).toBeLessThan(MIB);
  });

  test('has its runners in parts, which are all of them, each once', () => {
    const ids: string[] = [];
    for (let from: number | undefined = 0; from !== undefined;) {
      const { runners, moreFrom } = setStatus(state, now, { from });
      expect(runners.length).toBeLessThanOrEqual(PAGE);
      ids.push(...runners.map(({ workflowId }) => workflowId));
      from = moreFrom;
    }
    expect(ids).toEqual(state.runners.all().map(({ workflowId }) => workflowId));
    expect(ids).toHaveLength(MAX_RUNNERS);
  });

  test('has the numbers of runners without them', () => {
    const status = setStatus(state, now, { max: 0 });
    expect(status).toMatchObject({
      runners: [],
      runnerCounts: { starting: 0, idle: 0, busy: MAX_RUNNERS, draining: 0 },
    });
    expect(status).not.toHaveProperty('moreFrom');
  });

  test.each([null, 7, 'all', { from: -1, max: 'x' }, { from: Number.NaN, max: 1e9 }])(
    'a request that is none is one for the first runners: %j',
    (request) => {
      expect(setStatus(state, now, request)).toEqual(setStatus(state, now));
    },
  );

  test('the details in the UI are short, whatever is held', () => {
    expect(sizeOf(setDetails(state, now))).toBeLessThan(MIB / 32);
  });
});
