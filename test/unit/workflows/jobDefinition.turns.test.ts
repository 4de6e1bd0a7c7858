import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  MAX_WAITING,
  NO_TURNS,
  ask,
  begin,
  end,
  type Turn,
  type Turns,
} from '../../../workflows/jobDefinition/turns.ts';

const turn = (group: string, atMs = 1, event: 'push' | 'schedule' = 'push'): Turn => ({
  group,
  version: `${group}${atMs}`,
  atMs,
  source: { event },
  since: 'then',
});
const asked = (...turns: Turn[]): Turns =>
  turns.reduce((all, each) => ask(all, each).turns, NO_TURNS);
const groups = (turns: readonly Turn[]): string[] => turns.map(({ version }) => version);

test('at most so many at once; the others wait, the first come first', () => {
  const first = begin(asked(turn('a'), turn('b'), turn('c'), turn('d')), 2, 'now');
  expect(groups(first.hand)).toEqual(['a1', 'b1']);
  expect(groups(first.turns.waiting)).toEqual(['c1', 'd1']);
  expect(begin(first.turns, 2, 'now').hand).toEqual([]);
  const { turns, ended } = end(first.turns, 'a');
  expect(ended?.version).toBe('a1');
  expect(groups(begin(turns, 2, 'now').hand)).toEqual(['c1']);
});

test('of a change set that waits the newest alone, in the place of the first', () => {
  const waiting = asked(turn('a'), turn('b', 5), turn('c'), turn('b', 7));
  expect(groups(waiting.waiting)).toEqual(['a1', 'b7', 'c1']);
  expect(ask(waiting, turn('b', 6))).toEqual({ turns: waiting, leftOut: 'a newer version waits' });
});

test('a newer version of one under way needs no other turn', () => {
  const { turns } = begin(asked(turn('a'), turn('b')), 1, 'now');
  const newer = begin(ask(turns, turn('a', 2)).turns, 1, 'now');
  expect(newer.hand.map(({ version, number }) => [version, number])).toEqual([['a2', 2]]);
  expect(groups(newer.turns.running)).toEqual(['a2']);
  // What its group says of the older one comes late.
  expect(end(newer.turns, 'a', 1)).toEqual({ turns: newer.turns });
  expect(groups(end(newer.turns, 'a', 2).turns.running)).toEqual([]);
});

test('a time of a schedule passes by while the run before it is not over', () => {
  const waiting = asked(turn('s', 1, 'schedule'));
  expect(ask(waiting, turn('s', 2, 'schedule')).leftOut).toBe('the run before it is not over');
  const { turns } = begin(waiting, 1, 'now');
  expect(ask(turns, turn('s', 2, 'schedule')).leftOut).toBe('the run before it is not over');
  expect(ask(end(turns, 's').turns, turn('s', 2, 'schedule')).leftOut).toBeUndefined();
});

test('what waits has an end', () => {
  const full: Turns = {
    ...NO_TURNS,
    waiting: Array.from({ length: MAX_WAITING }, (_, n) => turn(`g${n}`)),
  };
  expect(ask(full, turn('more')).leftOut).toContain('1000');
  expect(ask(full, turn('g7', 2)).leftOut).toBeUndefined();
});

describe('whatever comes', () => {
  test('never more at once than may be, nobody is lost, nobody is overtaken', () => {
    const event = fc.oneof(
      fc.record({ kind: fc.constant('ask' as const), group: fc.nat(5) }),
      fc.record({ kind: fc.constant('end' as const), group: fc.nat(5) }),
    );
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 60 }),
        fc.integer({ min: 1, max: 3 }),
        (events, most) => {
          let turns = NO_TURNS;
          let at = 0;
          for (const { kind, group } of events) {
            const before = turns.waiting.map((each) => each.group);
            turns =
              kind === 'ask'
                ? ask(turns, turn(`g${group}`, ++at)).turns
                : end(turns, `g${group}`).turns;
            const begun = begin(turns, most, 'now');
            turns = begun.turns;
            expect(turns.running.length).toBeLessThanOrEqual(most);
            expect(new Set(turns.running.map((each) => each.group)).size).toBe(
              turns.running.length,
            );
            expect(turns.waiting.length === 0 || turns.running.length === most).toBe(true);
            // Who waited before and waits still is in the same order, and who has begun of them was in front.
            const still = before.filter((each) =>
              turns.waiting.some((other) => other.group === each),
            );
            expect(
              turns.waiting.map((each) => each.group).filter((each) => still.includes(each)),
            ).toEqual(still);
            const begunBefore = before.filter((each) =>
              begun.hand.some((other) => other.group === each),
            );
            expect(before.slice(0, begunBefore.length)).toEqual(begunBefore);
          }
        },
      ),
    );
  });
});
