/** Size of query responses and details of a set. Temporal rejects 2 MiB. */
import { describe, expect, test } from '@jest/globals';
import { MAX_HOLDS } from '../../../core/domain/scale.ts';
import { MAX_RUNNERS } from '../../../core/input/runnerSetSchema.ts';
import { setDetails, setStatus } from '../../../workflows/runnerSet/status.ts';
import { fullSet } from '../../support/fullSet.ts';

const MIB = 1024 * 1024;
const PAGE = 2_000;

describe('the status of a set with everything at its limit', () => {
  const state = fullSet();
  const now = state.facts.at;
  const sizeOf = (value: unknown): number => JSON.stringify(value).length;

  test('is less than half of the limit of Temporal, of which encryption needs a third', () => {
    expect(state.holds.size).toBe(MAX_HOLDS);
    expect(sizeOf(setStatus(state, now))).toBeLessThan(MIB);
  });

  test('has its runners in pages, each runner exactly once', () => {
    const ids: string[] = [];
    for (let after: string | undefined = ''; after !== undefined;) {
      const { runners, moreAfter } = setStatus(state, now, { after });
      expect(runners.length).toBeLessThanOrEqual(PAGE);
      ids.push(...runners.map(({ workflowId }) => workflowId));
      after = moreAfter;
    }
    expect(ids).toEqual(
      state.runners
        .all()
        .map(({ workflowId }) => workflowId)
        .toSorted(),
    );
    expect(ids).toHaveLength(MAX_RUNNERS);
  });

  test('has every running runner, even if others end between two pages', () => {
    const changing = fullSet();
    const seen = new Set<string>();
    for (let after: string | undefined = ''; after !== undefined;) {
      const { runners, moreAfter } = setStatus(changing, now, { after });
      for (const { workflowId } of runners) seen.add(workflowId);
      // The first one, and the last one, after which the next page starts.
      for (const ended of [runners[0], runners.at(-1)])
        changing.runners.remove(ended?.workflowId ?? '', now);
      after = moreAfter;
    }
    expect(changing.runners.all().filter(({ workflowId }) => !seen.has(workflowId))).toHaveLength(
      0,
    );
    expect(changing.runners.size).toBeLessThan(MAX_RUNNERS);
  });

  test('has the numbers of runners without them', () => {
    const status = setStatus(state, now, { max: 0 });
    expect(status).toMatchObject({
      runners: [],
      runnerCounts: { starting: 0, idle: 0, busy: MAX_RUNNERS, draining: 0 },
    });
    expect(status).not.toHaveProperty('moreAfter');
  });

  test.each([null, 7, 'all', { after: -1, max: 'x' }, { after: null, max: 1e9 }])(
    'an invalid request returns the first runners: %j',
    (request) => {
      expect(setStatus(state, now, request)).toEqual(setStatus(state, now));
    },
  );

  test('the details in the UI are short, with any number of holds', () => {
    expect(sizeOf(setDetails(state, now))).toBeLessThan(MIB / 32);
  });
});
