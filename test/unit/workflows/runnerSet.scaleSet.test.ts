import { describe, expect, test } from '@jest/globals';
import type { ScaleSetReport } from '../../../core/contract/index.ts';
import {
  applyNumbers,
  capacityOf,
  listenerInput,
  parseScaleSetReport,
  restoreScaleSet,
} from '../../../workflows/runnerSet/scaleSetDemand.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { advertisedCapacity } from '../../../workflows/runnerSet/size.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import type { RunnerSetInput } from '../../../core/contract/index.ts';

const NOW = 1_000_000;
const HASH = '0123456789';
const INPUT: RunnerSetInput = {
  name: 'gpu',
  max: 10,
  scaleDownDelay: '0s',
  template: { organization: 'acme', labels: ['self-hosted', 'gpu'], demand: 'scaleSet' },
};

function specOf(input: RunnerSetInput = INPUT) {
  const parsed = parseRunnerSetInput(input, {
    hash: () => HASH,
    checkSchedule: () => undefined,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { runner: _runner, ...spec } = parsed.spec;
  return spec;
}

const report = (
  assigned: number,
  running: number,
  messageId: number,
  more: Partial<ScaleSetReport> = {},
): ScaleSetReport => ({
  at: NOW,
  position: { openedAt: 1, messageId },
  numbers: { assigned, running },
  started: [],
  completed: [],
  ...more,
});

/** A set whose runners are listed, and none is missing. */
function setWith(input: RunnerSetInput = INPUT): SetState {
  const state = SetState.begin(specOf(input), input, {}, NOW);
  state.onListenerStarted(NOW);
  state.onListStarted(NOW);
  state.onRunnersListed([], [], NOW);
  state.updateDemand(NOW);
  return state;
}

const workflowId = (n: number): string => `runner-gpu-${String(n).padStart(10, 'a')}`;
const runnerName = (n: number): string => `gpu-${String(n).padStart(10, 'a')}-${HASH}`;

/** Sends a report to the set and returns how many runners it starts now. */
function receive(state: SetState, received: ScaleSetReport): number {
  state.jobReports.onScaleSetReport(received, NOW);
  state.updateDemand(NOW);
  return decideSet(state, NOW).start;
}

function begin(state: SetState, ...numbers: number[]): void {
  state.onRunnersStarting(
    numbers.map((n) => ({ workflowId: workflowId(n) })),
    NOW,
  );
  for (const n of numbers)
    state.onRunnerOnline({ workflowId: workflowId(n), runnerName: runnerName(n) }, NOW);
  state.updateDemand(NOW);
}

function end(state: SetState, n: number, ranJob = true): void {
  const event = { workflowId: workflowId(n), runnerName: runnerName(n) };
  state.onRunnerEnded({ ...event, outcome: 'succeeded', wasOnline: true, ranJob }, NOW);
  state.updateDemand(NOW);
}

describe('a set whose jobs GitHub assigns', () => {
  test('has a runner for each assigned job, and no more than its maximum', () => {
    const state = setWith();
    expect(receive(state, report(3, 0, 1))).toBe(3);
    begin(state, 1, 2, 3);
    expect(receive(state, report(3, 0, 1))).toBe(0);
    expect(receive(state, report(5, 0, 2))).toBe(2);
    expect(receive(state, report(500, 0, 3))).toBe(7);
  });

  test('ignores numbers that are older than those it knows', () => {
    const state = setWith();
    receive(state, report(2, 0, 5));
    expect(receive(state, report(9, 0, 4))).toBe(2);
    expect(receive(state, report(9, 0, 9, { position: { openedAt: 0, messageId: 9 } }))).toBe(2);
    // A new session restarts the count of its messages.
    expect(receive(state, report(4, 0, 0, { position: { openedAt: 2, messageId: 0 } }))).toBe(4);
  });

  test('ignores a position in the future, which would make it ignore all later numbers', () => {
    const state = setWith();
    const latest = NOW + state.facts.spec.relistMs;
    receive(state, report(9, 0, 1, { position: { openedAt: latest + 1, messageId: 1 } }));
    expect(receive(state, report(2, 0, 1))).toBe(2);
    // A clock that is ahead changes only the time of sending.
    expect(receive(state, report(3, 0, 2, { at: latest + 3_600_000 }))).toBe(3);
    expect(state.facts.scaleSet?.at).toBe(latest);
  });

  test('takes numbers of an earlier position when they are sent so late that the known ones are forged', () => {
    const state = setWith();
    const { relistMs } = state.facts.spec;
    receive(state, report(9, 0, Number.MAX_SAFE_INTEGER));
    expect(receive(state, report(2, 0, 1, { at: NOW + relistMs }))).toBe(9);
    state.jobReports.onScaleSetReport(
      report(2, 0, 1, { at: NOW + relistMs + 1 }),
      NOW + relistMs + 1,
    );
    expect(state.facts.scaleSet).toMatchObject({ assigned: 2, messageId: 1 });
  });

  test('starts no runner for the job of a draining one', () => {
    const state = setWith();
    receive(state, report(2, 0, 1));
    begin(state, 1, 2);
    receive(state, report(2, 2, 2, { started: [runnerName(1), runnerName(2)] }));
    state.onDrainRequested([workflowId(1)], [], NOW);
    state.updateDemand(NOW);
    expect(decideSet(state, NOW).start).toBe(0);
    // The next job needs a runner. The completed one is not subtracted twice.
    expect(receive(state, report(3, 2, 3))).toBe(1);
    expect(receive(state, report(2, 1, 4, { completed: [runnerName(1)] }))).toBe(1);
  });

  test('does not replace a runner whose job has ended before GitHub reports it', () => {
    const state = setWith();
    receive(state, report(2, 0, 1));
    begin(state, 1, 2);
    receive(state, report(2, 2, 2, { started: [runnerName(1), runnerName(2)] }));
    end(state, 1);
    // Two jobs are still assigned at GitHub, and one of them is over.
    expect(decideSet(state, NOW).start).toBe(0);
    expect(receive(state, report(1, 1, 3, { completed: [runnerName(1)] }))).toBe(0);
    expect(state.guards.size).toBe(0);
    // Now each further job needs a runner.
    expect(receive(state, report(2, 1, 4))).toBe(1);
  });

  test('does not count a runner that has finished its job, but not ended, for the next job', () => {
    const state = setWith();
    receive(state, report(1, 0, 1));
    begin(state, 1);
    receive(state, report(1, 1, 2, { started: [runnerName(1)] }));
    expect(receive(state, report(1, 0, 3, { completed: [runnerName(1)] }))).toBe(1);
    begin(state, 2);
    end(state, 1);
    expect(decideSet(state, NOW).start).toBe(0);
    expect(setStatus(state, NOW).jobs).toMatchObject({ startedTotal: 1, completedTotal: 1 });
  });

  test('replaces a runner that ended without a job', () => {
    const state = setWith();
    receive(state, report(1, 0, 1));
    begin(state, 1);
    end(state, 1, false);
    expect(decideSet(state, NOW).start).toBe(1);
  });

  test('uses the assignment of jobs to runners that GitHub reports', () => {
    const state = setWith();
    receive(state, report(2, 0, 1));
    begin(state, 1, 2);
    receive(state, report(2, 1, 2, { started: [runnerName(2)] }));
    expect(state.runners.get(workflowId(1))?.state).toBe('idle');
    expect(state.runners.get(workflowId(2))?.state).toBe('busy');
    // The other job was cancelled: the idle runner is drained, never the busy one.
    receive(state, report(1, 1, 3));
    expect(decideSet(state, NOW).drain.map((each) => each.workflowId)).toEqual([workflowId(1)]);
  });

  test('ignores a repeated report', () => {
    const state = setWith();
    receive(state, report(1, 0, 1));
    begin(state, 1);
    const started = report(1, 1, 2, { started: [runnerName(1)] });
    const completed = report(0, 0, 3, { completed: [runnerName(1)] });
    for (const each of [started, started, completed, completed, started]) receive(state, each);
    expect(setStatus(state, NOW).jobs).toEqual({
      queued: 0,
      running: 0,
      startedTotal: 1,
      completedTotal: 1,
    });
  });

  test('checks no list of jobs, reroutes none, and starts its listener at once', () => {
    const state = SetState.begin(specOf(), INPUT, {}, NOW);
    expect(decideSet(state, NOW)).toMatchObject({
      startListener: true,
      checkQueue: false,
      rerouteJobs: false,
    });
    state.onListenerStarted(NOW);
    expect(decideSet(state, NOW).startListener).toBe(false);
    expect(decideSet(state, NOW + state.facts.spec.relistMs).startListener).toBe(true);
  });

  test('carries its numbers over to the next run, which validates them', () => {
    const state = setWith();
    receive(state, report(4, 1, 7, { problem: 'away' }));
    const carried = state.carry();
    const restored = SetState.restore(carried, {
      spec: specOf(),
      declaration: INPUT,
      schedule: {},
      at: NOW,
    });
    expect(restored.facts.scaleSet).toMatchObject({ assigned: 4, running: 1, messageId: 7 });
    const forged = { ...carried.facts, scaleSet: { assigned: 'x' } as never };
    const other = SetState.restore(
      { ...carried, facts: forged },
      { spec: specOf(), declaration: INPUT, schedule: {}, at: NOW },
    );
    expect(other.facts.scaleSet).toBeUndefined();
    const future = { ...carried.facts.scaleSet, openedAt: NOW * 1_000 } as never;
    expect(
      SetState.restore(
        { ...carried, facts: { ...carried.facts, scaleSet: future } },
        { spec: specOf(), declaration: INPUT, schedule: {}, at: NOW },
      ).facts.scaleSet,
    ).toBeUndefined();
  });

  test('applies reports that arrive before the first step of the next run with the time of that step', () => {
    const state = setWith();
    receive(state, report(4, 1, 7));
    // No worker of the set ran for an hour; the listener has opened another session meanwhile.
    const at = NOW + 3_600_000;
    const restored = SetState.restore(state.carry(), {
      spec: specOf(),
      declaration: INPUT,
      schedule: {},
      at,
    });
    const position = { openedAt: at - 60_000, messageId: 1 };
    restored.jobReports.onScaleSetReport(report(9, 1, 1, { at, position }), restored.facts.at);
    expect(restored.facts.scaleSet).toMatchObject({ assigned: 9, at });
    expect(restored.facts.at).toBe(at);
    // A worker whose clock is behind does not set the clock of the set back.
    const { facts } = SetState.restore(restored.carry(), {
      spec: specOf(),
      declaration: INPUT,
      schedule: {},
      at: at - 1_000,
    });
    expect(facts.at).toBe(at);
  });

  test('shows why its scale set cannot be read, until it is readable', () => {
    const state = setWith();
    receive(state, report(1, 0, 1));
    const told = { at: NOW, started: [], completed: [], problem: 'held by another' };
    receive(state, told);
    expect(setStatus(state, NOW).scaleSet).toMatchObject({
      assigned: 1,
      problem: 'held by another',
    });
    expect(setStatus(state, NOW).waitingFor).toContain('held by another');
    receive(state, report(1, 0, 1));
    expect(setStatus(state, NOW).scaleSet?.problem).toBeUndefined();
  });
});

describe('the capacity that GitHub gets', () => {
  test('is the maximum, and 0 while the set starts no runners', () => {
    const state = setWith();
    expect(advertisedCapacity(state)).toBe(10);
    state.pause('rest');
    expect(advertisedCapacity(state)).toBe(0);
    state.resume();
    expect(advertisedCapacity(state)).toBe(10);
    state.end('over');
    expect(advertisedCapacity(state)).toBe(0);
  });

  test.each([
    [{ pods: 0, leaving: 0 }, 10],
    [{ pods: 9, leaving: 9 }, 10],
    [{ pods: 10, leaving: 3 }, 7],
    [{ pods: 12, leaving: 12 }, 0],
  ])('with %j of 10 is %d', (pods, capacity) => {
    const bounds = { kind: 'elastic', minIdle: 0, max: 10, replaceAhead: 0 } as const;
    expect(capacityOf({ bounds, startsNone: false, ...pods })).toBe(capacity);
  });
});

test.each([null, 'x', {}, { at: -1 }, { at: 'x' }, { at: 9e15 }])(
  'report %j is invalid',
  (body) => {
    expect(parseScaleSetReport(body)).toBeUndefined();
  },
);

test('only the valid fields of a report are used', () => {
  expect(
    parseScaleSetReport({
      at: 1,
      numbers: { assigned: -1, running: 0 },
      position: { openedAt: 1, messageId: Number.NaN },
      started: ['a', 5, null, 'x'.repeat(1_000)],
      completed: 'b',
      problem: 'y'.repeat(10_000),
    }),
  ).toEqual({ at: 1, started: ['a'], completed: [], problem: 'y'.repeat(500) });
});

test('numbers without a position change nothing', () => {
  const known = applyNumbers(undefined, report(3, 1, 1), 0);
  expect(
    applyNumbers(
      known,
      { at: NOW + 1, numbers: { assigned: 9, running: 9 }, started: [], completed: [] },
      0,
    ),
  ).toEqual(known);
  expect(restoreScaleSet(known, NOW)).toEqual(known);
});

test('the listener gets the labels without self-hosted, and the name of the set', () => {
  expect(listenerInput(specOf())).toEqual({
    set: 'gpu',
    scope: { kind: 'organization', name: 'acme' },
    credential: 'default',
    group: 'default',
    labels: ['gpu'],
    name: 'gpu',
  });
  const webhook = { ...INPUT, template: { organization: 'acme', labels: ['gpu'] } };
  expect(listenerInput(specOf(webhook))).toBeUndefined();
});

describe('input', () => {
  const fieldsOf = (input: unknown): string[] => {
    const parsed = parseRunnerSetInput(input, { hash: () => HASH, checkSchedule: () => undefined });
    return parsed.ok ? [] : parsed.errors.map(({ field }) => field);
  };
  const { template } = INPUT;

  test.each([
    ['queueCheck', { ...INPUT, queueCheck: '1m' }],
    ['groupJobs', { ...INPUT, groupJobs: true }],
    ['limits.perRepository', { ...INPUT, limits: { perRepository: 1 } }],
    ['template.ephemeral', { ...INPUT, template: { ...template, ephemeral: false } }],
    ['template.demand', { ...INPUT, template: { ...template, demand: 'queue' } }],
    ['template.scaleSet', { ...INPUT, template: { ...template, demand: 'webhook', scaleSet: {} } }],
    ['template.scaleSet.name', { ...INPUT, template: { ...template, scaleSet: { name: 'a/b' } } }],
  ])('%s is rejected', (field, input) => {
    expect(fieldsOf(input)).toEqual([field]);
  });

  test('a name of the scale set and adopt are accepted', () => {
    const named = { ...template, scaleSet: { name: 'arc-gpu', adopt: true } };
    expect(specOf({ ...INPUT, template: named }).scaleSet).toEqual({
      name: 'arc-gpu',
      adopt: true,
    });
  });
});
