/** A short exploration of the model of a runner; `npm run explore` is longer (docs/testing.md). */
import { describe, expect, test } from '@jest/globals';
import {
  decideUnregistration,
  type UnregistrationAction,
} from '../../../workflows/runner/unregisterTable.ts';
import { TABLES } from '../../../tools/model/decisionTables.ts';
import { explore, type Limits } from '../../../tools/model/explore.ts';
import { explorePairs, PAIRS } from '../../../tools/model/faultPairs.ts';
import { isKnown } from '../../../tools/model/knownViolations.ts';
import { decode, encode, initialState } from '../../../tools/model/state.ts';
import { formatViolation, violationKey } from '../../../tools/model/trace.ts';

const SMALL: Limits = {
  setups: ['ephemeral, no supervisor', 'command', 'checkpointing command'],
  depth: 1,
};

test('traces with one fault have known violations only', () => {
  const { violations, workflow, complete, states, ends } = explore(SMALL);
  const unknown = violations.filter((violation) => !isKnown(violation));
  expect(unknown.map((violation) => formatViolation(violation, workflow))).toEqual([]);
  expect(complete).toBe(true);
  expect(states).toBeGreaterThan(10_000);
  expect(ends).toBeGreaterThan(1_000);
});

test('traces with two faults have known violations only (pairs by seed, for ten seconds)', () => {
  const seed = Number(process.env['MODEL_SEED'] ?? 1);
  let pairs = 0;
  for (const { setup, faults, violations, workflow } of explorePairs({
    setups: [
      'ephemeral',
      'ephemeral, no supervisor',
      'static, no supervisor',
      'checkpointing command',
    ],
    states: 20_000,
    seconds: 10,
    seed,
  })) {
    pairs++;
    const traces = violations.map((violation) => formatViolation(violation, workflow));
    expect({ seed, setup, faults, traces }).toEqual({ seed, setup, faults, traces: [] });
  }
  expect(pairs).toBeGreaterThan(3);
}, 120_000);

test('an exploration of pairs continues at an index of the same order', () => {
  const limits = { setups: ['command'], states: 200, seed: 3 } as const;
  const all = explorePairs(limits);
  const first = [all.next().value, all.next().value, all.next().value];
  const continued = explorePairs({ ...limits, from: 2 }).next().value;
  expect(continued).toMatchObject({ index: 2, total: PAIRS.length, faults: first[2]?.faults });
});

describe('the exploration finds', () => {
  test('a table that tears down a runner although the CI server reports it as busy', () => {
    const unregisterTable = {
      ...TABLES.unregisterTable,
      decideUnregistration: (...[facts]: Parameters<typeof decideUnregistration>) =>
        facts.removalResult === 'busy'
          ? ({ kind: 'tearDown', row: '6', reason: 'broken by the test' } as const)
          : decideUnregistration(facts),
    };
    const { violations, workflow } = explore(
      { setups: ['ephemeral, no supervisor'], depth: 1 },
      { ...TABLES, unregisterTable },
    );
    const violation = violations.find(({ message }) =>
      message.startsWith('the pod was deleted while a job ran'),
    );
    expect(violation && formatViolation(violation, workflow)).toMatch(
      /^\s*0\. initial state[^]*job A starts[^]*broken by the test/m,
    );
  });

  test('the deletion of a pod that has started in the meantime', () => {
    const decide = (...[facts]: Parameters<typeof decideUnregistration>): UnregistrationAction => {
      const action = decideUnregistration(facts);
      if (action.kind !== 'tearDown') return action;
      const { unlessStarted: _dropped, ...unconditional } = action;
      return unconditional;
    };
    const { violations } = explore(
      { setups: ['command'], depth: 1 },
      { ...TABLES, unregisterTable: { ...TABLES.unregisterTable, decideUnregistration: decide } },
    );
    expect(violations.map(violationKey)).toContainEqual(
      expect.stringMatching(/^command: the pod was deleted while a job ran, .*never started/),
    );
  });

  test('an endless wait', () => {
    const unregisterFacts = {
      ...TABLES.unregisterFacts,
      applyEvent: (...[facts, event]: Parameters<typeof TABLES.unregisterFacts.applyEvent>) =>
        event.kind === 'podRefreshed'
          ? TABLES.unregisterFacts.applyEvent(facts, { kind: 'changed' })
          : TABLES.unregisterFacts.applyEvent(facts, event),
    };
    const { violations } = explore(
      { setups: ['command'], depth: 1 },
      { ...TABLES, unregisterFacts },
    );
    expect(violations.map(violationKey)).toContain(
      'command: no fair transition leads to an end from here',
    );
  });
});

test('decode is the inverse of encode', () => {
  const state = {
    ...initialState('static'),
    pod: 'running',
    stage: 'waiting',
    online: true,
    knowledge: 4_464,
    progress: 300,
  } as const;
  expect(decode(encode(state))).toEqual(state);
});
