/** The actions that follow from judgements and marks, and when no action is taken. */
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
  runnerWorkflow,
  object,
  pod,
  specOf,
} from '../../support/sweptObjects.ts';

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

test('objects in order are not findings, and skipped objects are counted by reason', () => {
  const plan = decide({
    pods: [seen(pod(), RUNNING), seen(pod({}, { onHold: true })), seen(pod({}, { onHold: true }))],
    registrations: [{ ...ghost(), proof: undefined as never }],
    runners: [runnerWorkflow({ startedAtMs: NOW - 8 * 24 * HOUR })],
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
    ['found for the first time is marked', pod(), 'mark'],
    ['marked by the previous sweep is repaired', marked('orphaned_pod'), 'repair'],
    ['marked 30 s ago is repaired', marked('orphaned_pod', 30 * SECOND), 'repair'],
    ['marked less than 30 s ago waits', marked('orphaned_pod', 30 * SECOND - 1), 'wait'],
    ['marked with another finding is marked again', marked('expired_pod'), 'mark'],
    ['with a mark that is not from the sweep is marked', pod({}, { mark: 'do something' }), 'mark'],
  ])('%s', (_what, it, step) => {
    expect(steps(decide({ pods: [seen(it)] }))).toEqual([step]);
  });

  test('loses its mark if it is in order again or skipped, unless it is on hold', () => {
    const [well, young, held] = [
      marked('orphaned_pod'),
      pod({}, { createdAtMs: NOW, mark: 'x' }),
      pod({}, { onHold: true, mark: 'x' }),
    ];
    expect(
      decide({ pods: [seen(well, RUNNING), seen(young), seen(held), seen(pod(), RUNNING)] }),
    ).toMatchObject({ findings: [], unmark: [well, young] });
  });

  test('its mark has the time, the finding and the reason, and can be parsed again', () => {
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
      'found again while the list may be as old as the mark',
      [mark(ago(MINUTE - 1))],
      'wait',
      ago(MINUTE - 1),
    ],
    ['found again a minute later', [mark(ago(MINUTE))], 'repair', ago(MINUTE)],
    [
      'with the mark of another registration',
      [mark(ago(HOUR), 'organization acme#8')],
      'mark',
      ago(0),
    ],
    ['with the mark of another scope', [mark(ago(HOUR), 'repository acme#7')], 'mark', ago(0)],
  ])('%s', (_what, marks, step, since) => {
    expect(decide({ registrations: [ghost()] }, marks).findings).toMatchObject([
      { step, mark: { kind: 'orphaned_registration', key: 'organization acme#7', since } },
    ]);
  });
});

test('a stuck runner keeps the time of the last poller until it is terminated', () => {
  const stuck = runnerWorkflow({
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

test('a step whose job has ended is marked, then stopped, by a separate kind of mark', () => {
  const step = runnerWorkflow({ phase: 'Busy', job: { workflowId: 'job-a', ...TERMINATED } });
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

describe('a hanging runner', () => {
  const hung = (name: string, online = false): RunnerWorkflow =>
    runnerWorkflow({
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
    [
      'found for the first time, after another runner of its workflow',
      [mark(ago(HOUR), 'earlier')],
      'mark',
      ago(0),
    ],
  ])('%s', (_what, marks, step, since) => {
    expect(decide({ runners: [hung('a')] }, marks).findings).toMatchObject([
      { as: 'unresponsive_runner', step, mark: { kind: 'unresponsive_runner', key: 'a', since } },
    ]);
  });

  test('that was in order in between is marked again: its old mark is dropped', () => {
    expect(decide({ runners: [hung('a', true)] }, [mark(ago(HOUR))]).findings).toEqual([]);
  });

  test.each<[what: string, runnerWorkflows: RunnerWorkflow[], step: string[], skipped: number]>([
    ['three of three', [hung('a'), hung('b'), hung('c')], ['mark', 'mark', 'mark'], 0],
    ['two of four', [hung('a'), hung('b'), hung('c', true), hung('d', true)], ['mark', 'mark'], 0],
    [
      'three of four: not the fault of the runners',
      [hung('a'), hung('b'), hung('c'), hung('d', true)],
      [],
      3,
    ],
    [
      'three of four, one of them in another scope',
      [
        hung('a'),
        hung('b'),
        hung('c', true),
        runnerWorkflow({
          workflowId: 'd',
          registration: ghost({ scope: { kind: 'repository', name: 'acme/web' } }),
        }),
      ],
      ['mark', 'mark', 'mark'],
      0,
    ],
  ])('with other runners of its scope: %s', (_what, runners, expected, skipped) => {
    const plan = decide({ runners });
    expect([steps(plan), plan.skipped]).toEqual([
      expected,
      skipped === 0 ? {} : { mass_offline: skipped },
    ]);
  });
});

test('that has continued as new in between is marked again', () => {
  const mark: SweepMark = {
    kind: 'stuck_runner',
    key: 'w earlier',
    since: ago(HOUR),
    unpolledSince: ago(12 * HOUR),
  };
  expect(
    steps(
      decide(
        { runners: [runnerWorkflow({ hasPoller: false, pods: [], taskPendingSinceMs: NOW })] },
        [mark],
      ),
    ),
  ).toEqual(['mark']);
});

describe('the whole sweep', () => {
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

  test('stops before pods of a location without workflows in Temporal, because the server may be the wrong one', () => {
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

  test('many resources do not stop it', () => {
    expect(
      decide({ resources: Array.from({ length: 20 }, () => seen(object())) }).abortReason,
    ).toBeUndefined();
  });
});

test('limits in production', () => {
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
