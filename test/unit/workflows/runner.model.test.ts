/** The life as a model, as far as a few seconds go; `npm run explore` goes further (docs/testing.md). */
import { describe, expect, test } from '@jest/globals';
import {
  decideUnregistration,
  type UnregistrationAction,
} from '../../../workflows/runner/unregisterTable.ts';
import { explore, keyOf, type Limits } from '../../../tools/model/explore.ts';
import { explorePairs } from '../../../tools/model/pairs.ts';
import { isKnown } from '../../../tools/model/known.ts';
import { TABLES } from '../../../tools/model/mind.ts';
import { tell } from '../../../tools/model/story.ts';
import { beginning, decode, encode } from '../../../tools/model/state.ts';

const SMALL: Limits = {
  setups: ['ephemeral, silent', 'command', 'checkpointing command'],
  depth: 1,
};

test('every story with one mishap: nothing is wrong that is not known', () => {
  const { wrongs, mind, complete, states, ends } = explore(SMALL);
  expect(wrongs.filter((wrong) => !isKnown(wrong)).map((wrong) => tell(wrong, mind))).toEqual([]);
  expect(complete).toBe(true);
  expect(states).toBeGreaterThan(10_000);
  expect(ends).toBeGreaterThan(1_000);
});

test('stories with two mishaps, for ten seconds: pairs that a seed chooses', () => {
  const seed = Number(process.env['MODEL_SEED'] ?? 1);
  let pairs = 0;
  for (const { setup, mishaps, wrongs, mind } of explorePairs({
    setups: ['ephemeral', 'ephemeral, silent', 'static, silent', 'checkpointing command'],
    states: 20_000,
    seconds: 10,
    seed,
  })) {
    pairs++;
    const stories = wrongs.map((wrong) => tell(wrong, mind));
    expect({ seed, setup, mishaps, stories }).toEqual({ seed, setup, mishaps, stories: [] });
  }
  expect(pairs).toBeGreaterThan(3);
}, 120_000);

describe('it finds what is wrong', () => {
  test('a table that tears down a runner which the CI server calls busy', () => {
    const unregisterTable = {
      ...TABLES.unregisterTable,
      decideUnregistration: (...[facts]: Parameters<typeof decideUnregistration>) =>
        facts.removalResult === 'busy'
          ? ({ kind: 'tearDown', row: '6', reason: 'broken by the test' } as const)
          : decideUnregistration(facts),
    };
    const { wrongs, mind } = explore(
      { setups: ['ephemeral, silent'], depth: 1 },
      { ...TABLES, unregisterTable },
    );
    const wrong = wrongs.find(({ what }) =>
      what.startsWith('a pod was asked to go under a job, and nobody had asked for a stop'),
    );
    expect(wrong && tell(wrong, mind)).toMatch(
      /^\s*0\. the beginning[^]*job A starts[^]*broken by the test/m,
    );
  });

  test('a pod that is deleted because it never started, although it has by then', () => {
    const decide = (...[facts]: Parameters<typeof decideUnregistration>): UnregistrationAction => {
      const action = decideUnregistration(facts);
      if (action.kind !== 'tearDown') return action;
      const { unlessStarted: _dropped, ...unconditional } = action;
      return unconditional;
    };
    const { wrongs } = explore(
      { setups: ['command'], depth: 1 },
      { ...TABLES, unregisterTable: { ...TABLES.unregisterTable, decideUnregistration: decide } },
    );
    expect(wrongs.map(keyOf)).toContainEqual(
      expect.stringMatching(
        /^command: a pod was asked to go under a job, and nobody had asked for a stop .*never started/,
      ),
    );
  });

  test('a wait that nothing ends', () => {
    const unregisterFacts = {
      ...TABLES.unregisterFacts,
      applyEvent: (...[facts, news]: Parameters<typeof TABLES.unregisterFacts.applyEvent>) =>
        news.kind === 'looked'
          ? TABLES.unregisterFacts.applyEvent(facts, { kind: 'changed' })
          : TABLES.unregisterFacts.applyEvent(facts, news),
    };
    const { wrongs } = explore({ setups: ['command'], depth: 1 }, { ...TABLES, unregisterFacts });
    expect(wrongs.map(keyOf)).toContain('command: nothing that is promised leads on from here');
  });
});

test('a state is the same after it was written down', () => {
  const state = {
    ...beginning('static'),
    pod: 'running',
    at: 'waiting',
    up: true,
    belief: 4_464,
    heard: 300,
  } as const;
  expect(decode(encode(state))).toEqual(state);
});
