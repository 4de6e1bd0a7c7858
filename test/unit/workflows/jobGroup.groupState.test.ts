/** A newer version of a change set and the runs of the older ones. */
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

const asked = (commit: string, atMs = 1_000, rerun = false): GroupEvent => ({
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

/** Events that are heard of together, and what follows then. */
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

/** What each event leads to, one after the other. */
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
    ['the first runs at once', [asked('a')], [[start(1, 'a')]]],
    [
      'the next, with nothing running, too',
      [asked('a'), ended(1), asked('b')],
      [[start(1, 'a')], [], [start(2, 'b')]],
    ],
    [
      'a newer one ends the older first',
      [asked('a'), asked('b')],
      [[start(1, 'a')], [supersede(1)]],
    ],
    [
      '… and begins when that is over',
      [asked('a'), asked('b'), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [start(2, 'b')]],
    ],
    [
      'of several that wait the newest runs; the older is told once',
      [asked('a'), asked('b'), asked('c'), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [], [start(3, 'c')]],
    ],
    [
      'the same commit, while it runs: nothing',
      [asked('a'), asked('a', 2_000)],
      [[start(1, 'a')], []],
    ],
    [
      '… while it waits: nothing',
      [asked('a'), asked('b'), asked('b', 2_000)],
      [[start(1, 'a')], [supersede(1)], []],
    ],
    [
      '… when it has run: nothing',
      [asked('a'), ended(1), asked('a', 2_000)],
      [[start(1, 'a')], [], []],
    ],
    [
      '… unless somebody asks for it',
      [asked('a'), ended(1), asked('a', 1_000, true)],
      [[start(1, 'a')], [], [start(2, 'a')]],
    ],
    [
      '… who need not wait for its end',
      [asked('a'), asked('a', 1_000, true), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [start(2, 'a')]],
    ],
    [
      'a push back to an older commit is a newer version',
      [asked('a'), asked('b', 2_000), asked('a', 3_000), ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [], [start(3, 'a')]],
    ],
    ['what comes late is no news', [asked('b', 2_000), asked('a', 1_000)], [[start(1, 'b')], []]],
    [
      '… also when nothing runs',
      [asked('b', 2_000), ended(1), asked('a', 1_000)],
      [[start(1, 'b')], [], []],
    ],
    [
      '… unless somebody asks for it',
      [asked('b', 2_000), ended(1), asked('a', 1_000, true)],
      [[start(1, 'b')], [], [start(2, 'a')]],
    ],
    [
      '… and what comes once more after that is still no news',
      [
        asked('a', 1_000),
        asked('b', 2_000),
        asked('a', 1_000, true),
        asked('b', 2_000),
        ended(1, 'aborted'),
      ],
      [[start(1, 'a')], [supersede(1)], [], [], [start(3, 'a')]],
    ],
    [
      '… nor the same commit, pushed meanwhile',
      [asked('b', 2_000), asked('a', 1_000, true), asked('a', 3_000), ended(1, 'aborted')],
      [[start(1, 'b')], [supersede(1)], [], [start(2, 'a')]],
    ],
    ['a cancel, nothing was asked', [cancelled], [[]]],
    ['… while one runs', [asked('a'), cancelled], [[start(1, 'a')], [cancel(1)]]],
    [
      '… drops the one that waits',
      [asked('a'), asked('b'), cancelled, ended(1, 'aborted')],
      [[start(1, 'a')], [supersede(1)], [cancel(1)], []],
    ],
    [
      '… after which the same commit runs again',
      [asked('a'), cancelled, ended(1, 'aborted'), asked('a', 2_000)],
      [[start(1, 'a')], [cancel(1)], [], [start(2, 'a')]],
    ],
    [
      '… but not if it comes late, nor does an older one',
      [asked('b', 2_000), cancelled, ended(1, 'aborted'), asked('b', 2_000), asked('a', 1_000)],
      [[start(1, 'b')], [cancel(1)], [], [], []],
    ],
    [
      '… and once only',
      [asked('a'), cancelled, ended(1, 'aborted'), asked('a', 2_000), ended(2), asked('a', 3_000)],
      [[start(1, 'a')], [cancel(1)], [], [start(2, 'a')], [], []],
    ],
    ['an end that is told twice', [asked('a'), ended(1), ended(1)], [[start(1, 'a')], [], []]],
    [
      'an end of one that is long over',
      [asked('a'), asked('b'), ended(1, 'aborted'), ended(1)],
      [[start(1, 'a')], [supersede(1)], [start(2, 'b')], []],
    ],
  ])('%s', (_what, events, expected) => {
    expect(play(events)).toEqual(expected);
  });

  test.each<[what: string, taken: GroupEvent[], unread: GroupEvent[], expected: boolean]>([
    ['nothing was heard', [asked('a'), ended(1)], [], false],
    ['another one has come', [asked('a'), ended(1)], [asked('b')], true],
    ['one that is no news', [asked('a'), ended(1)], [asked('a', 2_000)], false],
    ['the end of the run', [asked('a')], [ended(1)], false],
    ['the end of an older one', [asked('a'), asked('b')], [ended(1)], true],
  ])(
    'is to be run, as far as it is known, when it is asked before all was taken in: %s',
    (_what, taken, unread, expected) => {
      const { state } = taken.reduce((before, event) => hear(before.state, [event]), {
        state: INITIAL_STATE,
      });
      expect(willRun(state, unread)).toBe(expected);
    },
  );

  test.each<[what: string, events: GroupEvent[], expected: GroupState['outcome']]>([
    ['while it runs: none', [asked('a')], undefined],
    ['when it is over: its own', [asked('a'), ended(1, 'failed')], 'failed'],
    ['when a newer one has come: none', [asked('a'), ended(1, 'failed'), asked('b')], undefined],
    ['… and ended the older one first: none', [asked('a'), asked('b'), ended(1)], undefined],
    [
      'when it was cancelled before its run: aborted',
      [asked('a'), asked('b'), cancelled, ended(1)],
      'aborted',
    ],
    [
      "… and is over: the newer one's",
      [asked('a'), asked('b'), ended(1, 'aborted'), ended(2)],
      'succeeded',
    ],
  ])('the outcome %s', (_what, events, expected) => {
    expect(events.reduce((state, event) => hear(state, [event]).state, INITIAL_STATE).outcome).toBe(
      expected,
    );
  });

  test('20 pushes within a second: the last one runs to its end', () => {
    const pushes = Array.from({ length: 20 }, (_, index) => asked(`c${index}`, 1_000));
    expect(play([...pushes, ended(1, 'aborted'), ended(20)]).flat()).toEqual([
      start(1, 'c0'),
      supersede(1),
      start(20, 'c19'),
    ]);
  });

  test('heard of at once, they are one run', () => {
    const pushes = Array.from({ length: 20 }, (_, index) => asked(`c${index}`, 1_000));
    expect(hear(INITIAL_STATE, pushes).actions).toEqual([start(20, 'c19')]);
  });

  test('whatever comes, in whatever order: one at a time, each at most once, the newest at last, and its outcome alone', () => {
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
            // What starts finds none running; what is superseded or cancelled is what runs.
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
  ])('%s has one id, whatever its commit', (_what, id, expected) => {
    expect(id).toBe(expected);
  });
});

describe('the selection of a change set', () => {
  const web7 = { job: 'unit', repository: 'acme/web', base: 'main', pullRequest: 7 };
  const webPush = { job: 'unit', repository: 'acme/web', base: 'release/1.x' };

  test.each([web7, webPush])('%j is read back from the id of its group', (changeSet) => {
    expect(parseJobGroupId(jobGroupId(changeSet))).toEqual(changeSet);
  });

  test.each([
    'job-group:x',
    'job-group:unit:acme/web:main:pr-x',
    'job-unit',
    `${jobGroupId(web7)}:1`,
  ])('%s is no id of a group', (id) => expect(parseJobGroupId(id)).toBeUndefined());

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
