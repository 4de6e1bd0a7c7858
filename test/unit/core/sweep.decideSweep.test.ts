/** From judgements and marks to what is done; and when nothing is. */
import { describe, expect, test } from '@jest/globals';
import type { SweepMark } from '../../../core/contract/index.ts';
import {
  decideSweep,
  type ObjectWithOwner,
  type SweepInventory,
  type SweepPlan,
} from '../../../core/sweep/decideSweep.ts';
import type { OwnerWorkflow, RunnerWorkflow } from '../../../core/sweep/facts.ts';
import { objectMark, parseObjectMark } from '../../../core/sweep/objectMark.ts';
import type { OwnedObject } from '../../../core/sweep/ownedObject.ts';
import {
  HOUR,
  MINUTE,
  NOW,
  RUNNING,
  SECOND,
  SPEC,
  TERMINATED,
  ago,
  ghost,
  life,
  object,
  pod,
  specOf,
} from '../../support/sweptThings.ts';

const seen = (it: OwnedObject, its: OwnerWorkflow = TERMINATED): ObjectWithOwner => ({
  object: it,
  owner: its,
  used: false,
});
const nothing: SweepInventory = {
  pods: [],
  resources: [],
  jobObjects: [],
  registrations: [],
  runners: [],
  locationKnown: true,
};
const decide = (
  found: Partial<SweepInventory>,
  marks: readonly SweepMark[] = [],
  input: object = {},
  nowMs = NOW,
): SweepPlan => decideSweep({ ...nothing, ...found }, marks, nowMs, specOf(input));
const steps = ({ findings }: SweepPlan): string[] => findings.map(({ step }) => step);

test('what is fine is no finding, and what is skipped is counted by reason', () => {
  const plan = decide({
    pods: [seen(pod(), RUNNING), seen(pod({}, { onHold: true })), seen(pod({}, { onHold: true }))],
    registrations: [{ ...ghost(), proof: undefined as never }],
    runners: [life({ startedAtMs: NOW - 8 * 24 * HOUR })],
  });
  expect(plan).toEqual({
    findings: [],
    unmark: [],
    skipped: { on_hold: 2, foreign: 1, long_running: 1 },
  });
});

describe('an object', () => {
  const marked = (kind: Parameters<typeof objectMark>[0], ms = MINUTE) =>
    pod({}, { mark: objectMark(kind, 'why', NOW - ms) });

  test.each<[what: string, it: OwnedObject, step: string]>([
    ['found first is marked', pod(), 'mark'],
    ['that the sweep before marked is repaired', marked('orphaned_pod'), 'repair'],
    ['marked 30 s ago is repaired', marked('orphaned_pod', 30 * SECOND), 'repair'],
    ['marked less than 30 s ago waits', marked('orphaned_pod', 30 * SECOND - 1), 'wait'],
    ['marked for something else is marked anew', marked('expired_pod'), 'mark'],
    ['with words of somebody else is marked', pod({}, { mark: 'do something' }), 'mark'],
  ])('%s', (_what, it, step) => {
    expect(steps(decide({ pods: [seen(it)] }))).toEqual([step]);
  });

  test('that is fine again, or left alone, loses its mark; but not what a person holds', () => {
    const [well, young, held] = [
      marked('orphaned_pod'),
      pod({}, { createdAtMs: NOW, mark: 'x' }),
      pod({}, { onHold: true, mark: 'x' }),
    ];
    expect(
      decide({ pods: [seen(well, RUNNING), seen(young), seen(held), seen(pod(), RUNNING)] }),
    ).toMatchObject({ findings: [], unmark: [well, young] });
  });

  test('its mark says when, as what and why, and is read back', () => {
    const text = objectMark('orphaned_pod', 'its workflow ended:\nby hand', NOW);
    expect(text).toBe('2020-01-10T12:00:00.000Z orphaned_pod: its workflow ended:\nby hand');
    expect(parseObjectMark(text)).toEqual({ atMs: NOW, kind: 'orphaned_pod' });
    expect(
      [undefined, '', 'x', '2020-01-10T12:00:00Z something: else', 'never orphaned_pod: x'].map(
        parseObjectMark,
      ),
    ).toEqual(Array.from({ length: 5 }));
  });
});

describe('a registration', () => {
  const mark = (since: string, key = 'organization acme#7'): SweepMark => ({
    kind: 'orphaned_registration',
    key,
    since,
  });

  test.each<[what: string, marks: SweepMark[], step: string, since: string]>([
    ['found first', [], 'mark', ago(0)],
    [
      'found again while lists may be as old as the mark',
      [mark(ago(MINUTE - 1))],
      'wait',
      ago(MINUTE - 1),
    ],
    ['found again a minute later', [mark(ago(MINUTE))], 'repair', ago(MINUTE)],
    ['with the mark of another one', [mark(ago(HOUR), 'organization acme#8')], 'mark', ago(0)],
    ['with the mark of another scope', [mark(ago(HOUR), 'repository acme#7')], 'mark', ago(0)],
  ])('%s', (_what, marks, step, since) => {
    expect(decide({ registrations: [ghost()] }, marks).findings).toMatchObject([
      { step, mark: { kind: 'orphaned_registration', key: 'organization acme#7', since } },
    ]);
  });
});

test('a stuck runner keeps the time since when nobody polls, until it is terminated', () => {
  const stuck = life({
    hasPoller: false,
    pods: [],
    startedAtMs: NOW - 24 * HOUR,
    taskPendingSinceMs: NOW - MINUTE,
  });
  let marks: SweepMark[] = [];
  const seenSteps = [12 * HOUR, 6 * HOUR + 1, 6 * HOUR].map((msAgo) => {
    const [finding] = decide({ runners: [stuck] }, marks, {}, NOW - msAgo).findings;
    marks = finding === undefined || finding.subject === 'object' ? [] : [finding.mark];
    return finding?.step;
  });
  expect(seenSteps).toEqual(['mark', 'wait', 'terminate']);
  expect(marks).toEqual([
    {
      kind: 'stuck_runner',
      key: 'w r',
      since: ago(12 * HOUR),
      unpolledSince: ago(12 * HOUR),
    },
  ]);
});

test('a step that outlived its job is marked, then stopped, by a mark of its own kind', () => {
  const step = life({ phase: 'Busy', job: { workflowId: 'job-a', ...TERMINATED } });
  const [first] = decide({ runners: [step] }, [
    { kind: 'stuck_runner', key: 'w r', since: ago(HOUR) },
  ]).findings;
  expect(first).toMatchObject({
    as: 'orphaned_step',
    step: 'mark',
    mark: { kind: 'orphaned_step', key: 'w r', since: ago(0) },
  });
  expect(
    steps(
      decide({ runners: [step] }, [{ kind: 'orphaned_step', key: 'w r', since: ago(30 * SECOND) }]),
    ),
  ).toEqual(['repair']);
});

describe('a runner that hangs', () => {
  const hung = (name: string, online = false): RunnerWorkflow =>
    life({
      workflowId: name,
      pods: [pod({}, { registration: { name } })],
      registration: ghost({ name, online, hasRunner: true, hasPod: true }),
    });
  const mark = (since: string, key = 'a'): SweepMark => ({
    kind: 'unresponsive_runner',
    key,
    since,
  });

  test.each<[what: string, marks: SweepMark[], step: string, since: string]>([
    ['found first', [], 'mark', ago(0)],
    ['found again within four minutes', [mark(ago(4 * MINUTE - 1))], 'wait', ago(4 * MINUTE - 1)],
    ['found again four minutes later', [mark(ago(4 * MINUTE))], 'repair', ago(4 * MINUTE)],
    ['found first, after another one of its life', [mark(ago(HOUR), 'earlier')], 'mark', ago(0)],
  ])('%s', (_what, marks, step, since) => {
    expect(decide({ runners: [hung('a')] }, marks).findings).toMatchObject([
      { as: 'unresponsive_runner', step, mark: { kind: 'unresponsive_runner', key: 'a', since } },
    ]);
  });

  test('and was heard of in between is found anew: its mark is not handed on', () => {
    expect(decide({ runners: [hung('a', true)] }, [mark(ago(HOUR))]).findings).toEqual([]);
  });

  test.each<[what: string, lives: RunnerWorkflow[], step: string[], skipped: number]>([
    ['three of three', [hung('a'), hung('b'), hung('c')], ['mark', 'mark', 'mark'], 0],
    ['two of four', [hung('a'), hung('b'), hung('c', true), hung('d', true)], ['mark', 'mark'], 0],
    ['three of four: it is not they', [hung('a'), hung('b'), hung('c'), hung('d', true)], [], 3],
    [
      'three of four, one of them in another scope',
      [
        hung('a'),
        hung('b'),
        hung('c', true),
        life({
          workflowId: 'd',
          registration: ghost({ scope: { kind: 'repository', name: 'acme/web' } }),
        }),
      ],
      ['mark', 'mark', 'mark'],
      0,
    ],
  ])('with others of its scope: %s', (_what, runners, expected, skipped) => {
    const plan = decide({ runners });
    expect([steps(plan), plan.skipped]).toEqual([
      expected,
      skipped === 0 ? {} : { mass_offline: skipped },
    ]);
  });
});

test('that has continued as new in between is marked anew', () => {
  const mark: SweepMark = {
    kind: 'stuck_runner',
    key: 'w earlier',
    since: ago(HOUR),
    unpolledSince: ago(12 * HOUR),
  };
  expect(
    steps(
      decide({ runners: [life({ hasPoller: false, pods: [], taskPendingSinceMs: NOW })] }, [mark]),
    ),
  ).toEqual(['mark']);
});

describe('the whole', () => {
  const many = (condemned: number, of: number): ObjectWithOwner[] =>
    Array.from({ length: of }, (_, index) => seen(pod(), index < condemned ? TERMINATED : RUNNING));

  test.each<[condemned: number, of: number, input: object, stopped: boolean]>([
    [5, 10, {}, false],
    [6, 10, {}, true],
    [6, 10, { force: true }, false],
    [9, 9, {}, false],
    [10, 10, {}, true],
    [50, 100, {}, false],
    [51, 100, {}, true],
  ])('%i of %i pods condemned, %j: stops %p', (condemned, of, input, stopped) => {
    const plan = decide({ pods: many(condemned, of) }, [], input);
    const reason: unknown = expect.stringContaining(`${condemned} of ${of} pods`);
    expect(plan.abortReason).toEqual(stopped ? reason : undefined);
    expect(plan.findings).toHaveLength(condemned);
  });

  test('aged pods count', () => {
    const aged = Array.from({ length: 10 }, () =>
      seen(pod({ ended: true }, { createdAtMs: NOW - 25 * HOUR }), {
        state: 'finished',
        closedAtMs: NOW - 25 * HOUR,
      }),
    );
    expect(decide({ pods: aged }).abortReason).toContain('10 of 10 pods');
  });

  test('stops before pods of a place of which Temporal knows nothing: it may be the wrong server', () => {
    expect(decide({ pods: many(1, 1), locationKnown: false }).abortReason).toContain(
      'Temporal knows no runner of this installation',
    );
    for (const found of [{ registrations: [ghost()] }, { resources: [seen(object())] }])
      expect(decide({ ...found, locationKnown: false }).abortReason).toBeDefined();
    expect(
      decide({ pods: many(1, 1), locationKnown: false }, [], { force: true }).abortReason,
    ).toBeUndefined();
    expect(
      decide({ pods: [seen(pod({}, { createdAtMs: NOW - SECOND }))], locationKnown: false })
        .abortReason,
    ).toBeUndefined();
  });

  test('many resources are no reason to stop', () => {
    expect(
      decide({ resources: Array.from({ length: 20 }, () => seen(object())) }).abortReason,
    ).toBeUndefined();
  });
});

test('production’s limits', () => {
  expect(SPEC).toEqual({
    dryRun: false,
    force: false,
    scopes: [],
    minAgeMs: 30 * SECOND,
    maxPodAgeMs: 24 * HOUR,
    maxRunnerAgeMs: 7 * 24 * HOUR,
    listMaxAgeMs: MINUTE,
    unresponsiveAfterMs: 4 * MINUTE,
    terminateAfterMs: 6 * HOUR,
  });
});
