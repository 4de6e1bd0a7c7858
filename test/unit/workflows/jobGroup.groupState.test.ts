/** How a newer version of a change set affects the runs of older ones. */
import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import {
  jobGroupId,
  parseChangeSetSelector,
  parseJobGroupId,
  selectsChangeSet,
  selectsJob,
} from '../../../core/domain/changeSet.ts';
import {
  INITIAL_STATE,
  begin,
  willRun,
  step,
  type GroupAction,
  type GroupEvent,
  type GroupState,
} from '../../../workflows/jobGroup/groupState.ts';

const requested = (commit: string, atMs = 1_000, rerun = false): GroupEvent => ({
  kind: 'asked',
  version: { commit, atMs },
  rerun,
});
const ended = (
  runNumber: number,
  outcome: 'succeeded' | 'aborted' | 'failed' = 'succeeded',
): GroupEvent => ({ kind: 'ended', runNumber, outcome });
const start = (runNumber: number, commit: string): GroupAction => ({
  kind: 'start',
  runNumber,
  commit,
});
const cancelled: GroupEvent = { kind: 'cancelled' };
const cancel = (runNumber: number): GroupAction => ({ kind: 'cancel', runNumber });
const supersede = (runNumber: number): GroupAction => ({ kind: 'supersede', runNumber });

/** Events that arrive together, and the resulting actions. */
function hear(
  state: GroupState,
  events: readonly GroupEvent[],
): { state: GroupState; actions: GroupAction[] } {
  const actions: GroupAction[] = [];
  const take = (next: ReturnType<typeof step>): GroupState => {
    actions.push(...next.actions);
    return next.state;
  };
  return {
    state: take(begin(events.reduce((before, event) => take(step(before, event)), state))),
    actions,
  };
}

/** The actions after each event, in order. */
function play(events: readonly GroupEvent[]): GroupAction[][] {
  let state = INITIAL_STATE;
  return events.map((event) => {
    const next = hear(state, [event]);
    ({ state } = next);
    return next.actions;
  });
}

describe('a version of a change set', () => {
  test.each<[what: string, events: GroupEvent[], expected: GroupAction[][]]>([
    ['the first version runs at once', [requested('a')], [[start(1, 'a')]]],
    [
      'the next version runs at once, if none is running',
      [requested('a'), ended(1), requested('b')],
      [[start(1, 'a')], [], [start(2, 'b')]],
    ],
    [
      'a newer version first ends the older one',
      [requested('a'), requested('b')],
      [[start(1, 'a')], [supersede(1)]],
    ],
    [
      '… and starts when that has ended',
      [requested('a'), requested('b'), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [start(2, 'b')]],
    ],
    [
      'of several waiting versions the newest runs; the running one is superseded once',
      [requested('a'), requested('b'), requested('c'), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [], [start(3, 'c')]],
    ],
    [
      'the same commit, while it runs: ignored',
      [requested('a'), requested('a', 2_000)],
      [[start(1, 'a')], []],
    ],
    [
      '… while it waits: ignored',
      [requested('a'), requested('b'), requested('b', 2_000)],
      [[start(1, 'a')], [supersede(1)], []],
    ],
    [
      '… after it has run: ignored',
      [requested('a'), ended(1), requested('a', 2_000)],
      [[start(1, 'a')], [], []],
    ],
    [
      '… unless a user requests it',
      [requested('a'), ended(1), requested('a', 1_000, true)],
      [[start(1, 'a')], [], [start(2, 'a')]],
    ],
    [
      '… also before its end',
      [requested('a'), requested('a', 1_000, true), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [start(2, 'a')]],
    ],
    [
      'a push back to an older commit is a newer version',
      [requested('a'), requested('b', 2_000), requested('a', 3_000), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [], [start(3, 'a')]],
    ],
    [
      'an older version that arrives late is ignored',
      [requested('b', 2_000), requested('a', 1_000)],
      [[start(1, 'b')], []],
    ],
    [
      '… also if nothing runs',
      [requested('b', 2_000), ended(1), requested('a', 1_000)],
      [[start(1, 'b')], [], []],
    ],
    [
      '… unless a user requests it',
      [requested('b', 2_000), ended(1), requested('a', 1_000, true)],
      [[start(1, 'b')], [], [start(2, 'a')]],
    ],
    [
      '… and a repetition of it is still ignored',
      [
        requested('a', 1_000),
        requested('b', 2_000),
        requested('a', 1_000, true),
        requested('b', 2_000),
        ended(1, 'aborted'),
      ],
      [[start(1, 'a')], [supersede(1)], [], [], [start(3, 'a')]],
    ],
    [
      '… and so is the same commit that was pushed in between',
      [
        requested('b', 2_000),
        requested('a', 1_000, true),
        requested('a', 3_000),
        ended(1, 'aborted'),
      ],
      [[start(1, 'b')], [supersede(1)], [], [start(2, 'a')]],
    ],
    ['a cancel without a version', [cancelled], [[]]],
    ['… while a version runs', [requested('a'), cancelled], [[start(1, 'a')], [cancel(1)]]],
    [
      '… drops the waiting version',
      [requested('a'), requested('b'), cancelled, ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [cancel(1)], []],
    ],
    [
      '… after which the same commit runs again',
      [requested('a'), cancelled, ended(1, 'aborted'), requested('a', 2_000)],
      [[start(1, 'a')], [cancel(1)], [], [start(2, 'a')]],
    ],
    [
      '… but not if it arrives late, and neither does an older one',
      [
        requested('b', 2_000),
        cancelled,
        ended(1, 'aborted'),
        requested('b', 2_000),
        requested('a', 1_000),
      ],
      [[start(1, 'b')], [cancel(1)], [], [], []],
    ],
    [
      '… only once',
      [
        requested('a'),
        cancelled,
        ended(1, 'aborted'),
        requested('a', 2_000),
        ended(2),
        requested('a', 3_000),
      ],
      [[start(1, 'a')], [cancel(1)], [], [start(2, 'a')], [], []],
    ],
    [
      'an end that is reported twice',
      [requested('a'), ended(1), ended(1)],
      [[start(1, 'a')], [], []],
    ],
    [
      'the end of a version that ended earlier',
      [requested('a'), requested('b'), ended(1, 'aborted'), ended(1)],
      [[start(1, 'a')], [supersede(1)], [start(2, 'b')], []],
    ],
  ])('%s', (_what, events, expected) => {
    expect(play(events)).toEqual(expected);
  });

  test.each<[what: string, taken: GroupEvent[], unread: GroupEvent[], expected: boolean]>([
    ['no event arrived', [requested('a'), ended(1)], [], false],
    ['another version arrived', [requested('a'), ended(1)], [requested('b')], true],
    ['an ignored version arrived', [requested('a'), ended(1)], [requested('a', 2_000)], false],
    ['the run ended', [requested('a')], [ended(1)], false],
    ['an older run ended', [requested('a'), requested('b')], [ended(1)], true],
  ])(
    'will start another run, according to unprocessed events: %s',
    (_what, taken, unread, expected) => {
      const { state } = taken.reduce((before, event) => hear(before.state, [event]), {
        state: INITIAL_STATE,
      });
      expect(willRun(state, unread)).toBe(expected);
    },
  );

  test.each<[what: string, events: GroupEvent[], expected: GroupState['outcome']]>([
    ['while it runs: undefined', [requested('a')], undefined],
    ['after its end: its own', [requested('a'), ended(1, 'failed')], 'failed'],
    [
      'after a newer version arrived: undefined',
      [requested('a'), ended(1, 'failed'), requested('b')],
      undefined,
    ],
    [
      '… and superseded the older one: undefined',
      [requested('a'), requested('b'), ended(1)],
      undefined,
    ],
    [
      'when it was cancelled before its run: aborted',
      [requested('a'), requested('b'), cancelled, ended(1)],
      'aborted',
    ],
    [
      '… and ended: that of the newer one',
      [requested('a'), requested('b'), ended(1, 'aborted'), ended(2)],
      'succeeded',
    ],
  ])('the outcome %s', (_what, events, expected) => {
    expect(events.reduce((state, event) => hear(state, [event]).state, INITIAL_STATE).outcome).toBe(
      expected,
    );
  });

  test('of 20 pushes within a second the last one runs to its end', () => {
    const pushes = Array.from({ length: 20 }, (_, index) => requested(`c${index}`, 1_000));
    expect(play([...pushes, ended(1, 'aborted'), ended(20)]).flat()).toEqual([
      start(1, 'c0'),
      supersede(1),
      start(20, 'c19'),
    ]);
  });

  test('20 pushes that arrive together cause one run', () => {
    const pushes = Array.from({ length: 20 }, (_, index) => requested(`c${index}`, 1_000));
    expect(hear(INITIAL_STATE, pushes).actions).toEqual([start(20, 'c19')]);
  });

  test('for all events in every order: one run at a time, each version at most once, the newest last, and only its outcome', () => {
    const event = fc.oneof(
      fc.record({
        kind: fc.constant('asked' as const),
        version: fc.record({
          commit: fc.constantFrom('a', 'b', 'c'),
          atMs: fc.integer({ min: 0, max: 5 }),
        }),
        rerun: fc.boolean(),
      }),
      fc.record({ kind: fc.constant('over' as const) }),
      fc.record({
        kind: fc.constant('ended' as const),
        runNumber: fc.integer({ min: 0, max: 8 }),
        outcome: fc.constant('succeeded' as const),
      }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let state: GroupState = INITIAL_STATE;
        let runs: number | undefined;
        const started: number[] = [];
        const misplaced: unknown[] = [];
        const happens = (happened: GroupEvent): void => {
          if (happened.kind === 'ended' && happened.runNumber === runs) runs = undefined;
          const next = hear(state, [happened]);
          ({ state } = next);
          for (const action of next.actions) {
            // A run starts only if none is running. Only the running one is superseded or cancelled.
            const expected = action.kind === 'start' ? undefined : action.runNumber;
            if (runs !== expected) misplaced.push({ action, runs });
            if (action.kind === 'start') started.push((runs = action.runNumber));
          }
        };
        for (const each of events) {
          if (each.kind !== 'over') happens(each);
          else if (runs !== undefined) happens(ended(runs));
        }
        for (let left = 2; runs !== undefined && left > 0; left--) happens(ended(runs));
        expect(misplaced).toEqual([]);
        expect(runs).toBeUndefined();
        expect(started).toEqual([...new Set(started)].toSorted((a, b) => a - b));
        expect(started.at(-1) ?? 0).toBe(state.runNumber);
        expect(state.outcome).toBe(started.length === 0 ? undefined : 'succeeded');
      }),
      { numRuns: 300 },
    );
  });
});

describe('a change set', () => {
  test.each<[what: string, id: string, expected: string]>([
    [
      'a pull request',
      jobGroupId({ job: 'unit', repository: 'Acme/Web', base: 'release/1.2', pullRequest: 7 }),
      'job-group:unit:acme/web:release/1.2:pr-7',
    ],
    [
      'pushes to a branch',
      jobGroupId({ job: 'unit', repository: 'acme/web', base: 'main' }),
      'job-group:unit:acme/web:main:push',
    ],
  ])('%s has one id for all its commits', (_what, id, expected) => {
    expect(id).toBe(expected);
  });
});

describe('the selection of a change set', () => {
  const web7 = { job: 'unit', repository: 'acme/web', base: 'main', pullRequest: 7 };
  const webPush = { job: 'unit', repository: 'acme/web', base: 'release/1.x' };

  test.each([web7, webPush])('%j is parsed from the id of its group', (changeSet) => {
    expect(parseJobGroupId(jobGroupId(changeSet))).toEqual(changeSet);
  });

  test.each([
    'job-group:x',
    'job-group:unit:acme/web:main:pr-x',
    'job-unit',
    `${jobGroupId(web7)}:1`,
  ])('%s is not the id of a group', (id) => expect(parseJobGroupId(id)).toBeUndefined());

  test.each([
    ['acme/web#7', { repository: 'acme/web', pullRequest: 7 }],
    ['acme/web@release/1.x', { repository: 'acme/web', branch: 'release/1.x' }],
    ['acme/web', undefined],
    ['acme/web#0', undefined],
    ['acme/web#seven', undefined],
    ['acme#7', undefined],
    ['acme/web@', undefined],
  ])('%s', (text, selector) => expect(parseChangeSetSelector(text)).toEqual(selector));

  test.each([
    ['acme/web#7', web7, true],
    ['Acme/Web#7', web7, true],
    ['acme/web#7', { ...web7, base: 'next', job: 'e2e' }, true],
    ['acme/web#8', web7, false],
    ['acme/app#7', web7, false],
    ['acme/web@main', web7, false],
    ['acme/web@release/1.x', webPush, true],
    ['acme/web@main', webPush, false],
  ])('%s, the group of %j: %p', (text, changeSet, expected) => {
    const selector = parseChangeSetSelector(text);
    expect(selector && selectsChangeSet(selector, changeSet)).toBe(expected);
  });

  test.each([
    ['acme/web#7', { event: 'pull_request', pullRequest: 7 }, true],
    ['acme/web#7', { event: 'pull_request', pullRequest: 8 }, false],
    ['acme/web#7', {}, false],
    ['acme/web@main', { event: 'push', ref: 'refs/heads/main' }, true],
    ['acme/web@main', { event: 'pull_request', ref: 'refs/heads/main', base: 'main' }, false],
    ['acme/web@main', { event: 'push', ref: 'refs/heads/next' }, false],
    ['acme/app@main', { event: 'push', ref: 'refs/heads/main' }, false],
  ] as const)('%s, a job of acme/web for %j: %p', (text, source, expected) => {
    const selector = parseChangeSetSelector(text);
    expect(selector && selectsJob(selector, 'Acme/web', source)).toBe(expected);
  });
});
