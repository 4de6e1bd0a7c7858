import { describe, expect, test } from '@jest/globals';
import type { SupervisorAction } from '../../supervisor/signals/actions.ts';
import type { StoppingSignal, SupervisorEvent } from '../../supervisor/signals/events.ts';
import { INITIAL_STATE, type LifecycleState, step } from '../../supervisor/signals/lifecycle.ts';
import type { StopPolicy } from '../../supervisor/signals/stopPolicy.ts';
import type { StopReason } from '../../core/domain/pod.ts';

const PLAN: StopPolicy = {
  timeoutMs: 4 * 3_600_000,
  signalTimeoutMs: 1_800_000,
  cleanupTimeoutMs: 60_000,
  drainTimeoutMs: 600_000,
  onTerm: 'stop',
  stopSignals: [],
  signalTarget: 'group',
  cleanup: false,
};

/** Short texts of the actions, so that rows are readable. */
function brief(action: SupervisorAction): string {
  switch (action.kind) {
    case 'log':
      return action.level === 'error' ? action.msg : `(${action.msg})`;
    case 'startTimer':
      return `timer ${action.name} ${action.ms}`;
    case 'stopTimers':
      return `no timers${action.except.map((name) => ` but ${name}`).join('')}`;
    case 'tellReason':
      return `tell ${action.reason}`;
    case 'sendStop':
      return `${action.to} gets ${action.signal}`;
    case 'signalChild':
      return `${action.kind} ${action.signal}`;
    case 'record':
    case 'cleanup':
      return `${action.kind} ${action.verdict.exitCode} ${action.verdict.signal} ${action.verdict.reason}${action.verdict.error === undefined ? '' : `: ${action.verdict.error}`}`;
    case 'exit':
    case 'abandon':
      return `${action.kind} ${action.status.kind === 'code' ? action.status.code : action.status.signal}${'unrecorded' in action ? ` unrecorded ${action.unrecorded?.exitCode}` : ''}`;
    case 'spawn':
    case 'awaitGroup':
    case 'sweep':
      return action.kind;
  }
}

function play(
  events: readonly SupervisorEvent[],
  plan: Partial<StopPolicy> = {},
): { state: LifecycleState; did: string[][] } {
  let state = INITIAL_STATE;
  const did = events.map((event) => {
    const next = step(state, event, { ...PLAN, ...plan });
    state = next.state;
    return next.actions.map(brief);
  });
  return { state, did };
}

const ready: SupervisorEvent = { kind: 'ready' };
const spawned: SupervisorEvent = { kind: 'spawned' };
const signal = (name: StoppingSignal, more: { idle?: boolean } = {}): SupervisorEvent => ({
  kind: 'stopSignal',
  signal: name,
  idle: false,
  ...more,
});
const stated = (reason: StopReason): SupervisorEvent => ({ kind: 'stated', reason });
const timer = (name: (SupervisorEvent & { kind: 'timer' })['name']): SupervisorEvent => ({
  kind: 'timer',
  name,
});
const exited = (code: number | null, by: NodeJS.Signals | null = null): SupervisorEvent => ({
  kind: 'childExited',
  end: { code, signal: by },
});
const empty: SupervisorEvent = { kind: 'groupEmpty' };
const swept: SupervisorEvent = { kind: 'swept' };
const recorded: SupervisorEvent = { kind: 'recorded' };

const STOPPED = (reason: string, name: string): string[] => [
  'no timers',
  `tell ${reason}`,
  `group gets ${name}`,
  'timer grace 1800000',
  'timer deadMan 1860000',
];
const DRAINING = (reason: string): string[] => [
  'Entrypoint received interrupt: terminated',
  '(Process may finish within 10m0s drain timeout)',
  `tell ${reason}`,
  'timer drain 600000',
  'timer deadMan 2460000',
];
const SWEEP = ['no timers but deadMan', 'sweep'];
const RECORD = (what: string): string[] => ['no timers but deadMan', `record ${what}`];
const EXIT = (how: string): string[] => ['no timers but deadMan', `exit ${how}`];

describe('a run of the supervisor, step by step', () => {
  test.each<{
    what: string;
    events: SupervisorEvent[];
    did: string[][];
    plan?: Partial<StopPolicy>;
  }>([
    {
      what: 'exits by itself',
      events: [ready, spawned, exited(3), recorded, swept],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['timer deadMan 90000', ...RECORD('3 null null')],
        SWEEP,
        EXIT('3'),
      ],
    },
    {
      what: 'without a timeout there is no timer',
      events: [ready, spawned],
      plan: { timeoutMs: undefined as never },
      did: [['spawn'], []],
    },
    {
      what: 'killed by another process',
      events: [ready, spawned, exited(null, 'SIGKILL'), recorded, swept],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['timer deadMan 90000', ...RECORD('137 SIGKILL null')],
        SWEEP,
        EXIT('SIGKILL'),
      ],
    },
    {
      what: 'cannot start',
      events: [ready, { kind: 'startFailed', message: 'ENOENT' }, recorded],
      did: [
        ['spawn'],
        [
          'Could not start the process: ENOENT',
          'timer deadMan 60000',
          'record 127 null null: ENOENT',
        ],
        EXIT('127'),
      ],
    },
    {
      what: 'signal before the start: the later start is ignored',
      events: [signal('SIGTERM'), ready, spawned, recorded],
      did: [
        [
          'Entrypoint received interrupt: terminated',
          'timer deadMan 60000',
          'record 143 null cancelled',
        ],
        [],
        [],
        EXIT('SIGTERM'),
      ],
    },
    {
      what: 'SIGQUIT before the start',
      events: [signal('SIGQUIT'), recorded],
      did: [
        ['Entrypoint received interrupt: quit', 'timer deadMan 60000', 'record 131 null cancelled'],
        EXIT('131'),
      ],
    },
    {
      what: 'timeout, in time',
      events: [ready, spawned, timer('timeout'), exited(0), empty, recorded, swept],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Process did not finish before 4h0m0s timeout', ...STOPPED('timeout', 'SIGINT')],
        ['awaitGroup'],
        ['Process gracefully exited before 30m0s grace period', ...RECORD('127 null timeout')],
        SWEEP,
        EXIT('127'),
      ],
    },
    {
      what: 'timeout, not in time',
      events: [
        ready,
        spawned,
        timer('timeout'),
        timer('grace'),
        exited(null, 'SIGKILL'),
        recorded,
        swept,
      ],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Process did not finish before 4h0m0s timeout', ...STOPPED('timeout', 'SIGINT')],
        ['Process did not exit before 30m0s grace period', ...SWEEP],
        RECORD('127 SIGKILL timeout'),
        SWEEP,
        EXIT('127'),
      ],
    },
    {
      what: 'swept before the child is reaped: sweeps again',
      events: [
        ready,
        spawned,
        signal('SIGTERM'),
        timer('grace'),
        swept,
        exited(null, 'SIGKILL'),
        swept,
        recorded,
      ],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Entrypoint received interrupt: terminated', ...STOPPED('cancelled', 'SIGTERM')],
        ['Process did not exit before 30m0s grace period', ...SWEEP],
        ['sweep'],
        RECORD('137 SIGKILL cancelled'),
        [],
        SWEEP,
      ],
    },
    {
      what: 'the child has exited, its group has not: the group is killed after the grace period and the record; the status is that of the child',
      events: [ready, spawned, signal('SIGTERM'), exited(5), timer('grace'), recorded, swept],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Entrypoint received interrupt: terminated', ...STOPPED('cancelled', 'SIGTERM')],
        ['awaitGroup'],
        ['Process did not exit before 30m0s grace period', ...RECORD('5 null cancelled')],
        SWEEP,
        EXIT('5'),
      ],
    },
    {
      what: 'signals are passed on once',
      events: [
        ready,
        spawned,
        signal('SIGINT'),
        signal('SIGINT'),
        signal('SIGTERM'),
        timer('timeout'),
      ],
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Entrypoint received interrupt: interrupt', ...STOPPED('cancelled', 'SIGINT')],
        ['Entrypoint received interrupt: interrupt (already stopping, not passed on)'],
        ['Entrypoint received interrupt: terminated (already stopping, not passed on)'],
        [],
      ],
    },
    {
      what: 'stop.signals is a sequence',
      events: [
        ready,
        spawned,
        signal('SIGTERM'),
        timer('signal1'),
        exited(0),
        empty,
        timer('signal1'),
      ],
      plan: {
        stopSignals: [
          { signal: 'SIGINT', afterMs: 0 },
          { signal: 'SIGTERM', afterMs: 5000 },
        ],
      },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        [
          'Entrypoint received interrupt: terminated',
          'no timers',
          'tell cancelled',
          'group gets SIGINT',
          'timer signal1 5000',
          'timer grace 1800000',
          'timer deadMan 1860000',
        ],
        ['group gets SIGTERM'],
        ['awaitGroup'],
        ['Process gracefully exited before 30m0s grace period', ...RECORD('0 null cancelled')],
        [],
      ],
    },
    {
      what: 'cleanup runs after the marker, within its time',
      events: [
        ready,
        spawned,
        exited(1),
        recorded,
        swept,
        signal('SIGTERM'),
        { kind: 'cleanupEnded' },
      ],
      plan: { cleanup: true },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['timer deadMan 90000', ...RECORD('1 null null')],
        SWEEP,
        ['timer cleanup 60000', 'cleanup 1 null null'],
        ['Entrypoint received interrupt: terminated (the process has ended already)'],
        EXIT('1'),
      ],
    },
    {
      what: 'cleanup that does not end',
      events: [ready, spawned, exited(0), recorded, swept, timer('cleanup')],
      plan: { cleanup: true },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['timer deadMan 90000', ...RECORD('0 null null')],
        SWEEP,
        ['timer cleanup 60000', 'cleanup 0 null null'],
        ['Cleanup did not finish before 1m0s cleanup timeout', ...EXIT('0')],
      ],
    },
    {
      what: 'drain: finishes in time',
      events: [ready, spawned, signal('SIGTERM'), signal('SIGTERM'), exited(0), recorded],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        DRAINING('drained'),
        ['Entrypoint received interrupt: terminated (already draining)'],
        ['timer deadMan 90000', ...RECORD('0 null null')],
        SWEEP,
      ],
    },
    {
      what: 'drain: does not finish',
      events: [ready, spawned, stated('evicted'), signal('SIGTERM'), timer('drain')],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        [],
        DRAINING('evicted'),
        ['Process did not finish before 10m0s drain timeout', ...STOPPED('evicted', 'SIGTERM')],
      ],
    },
    {
      what: 'drain: an idle runner is stopped at once',
      events: [ready, spawned, signal('SIGTERM', { idle: true })],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        ['Entrypoint received interrupt: terminated', ...STOPPED('drained', 'SIGTERM')],
      ],
    },
    {
      what: "drain: the runner's job is over",
      events: [ready, spawned, { kind: 'jobEnded' }, signal('SIGTERM'), { kind: 'jobEnded' }],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        [],
        DRAINING('drained'),
        STOPPED('drained', 'SIGTERM'),
      ],
    },
    {
      what: 'drain: another signal stops the process',
      events: [ready, spawned, signal('SIGTERM'), signal('SIGINT')],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        DRAINING('drained'),
        ['Entrypoint received interrupt: interrupt', ...STOPPED('drained', 'SIGINT')],
      ],
    },
    ...(['cancelled', 'superseded', 'timeout'] as const).map((reason) => ({
      what: `drain: ended by ${reason}, stated later; repeating it changes nothing`,
      events: [ready, spawned, signal('SIGTERM'), stated(reason), stated(reason)],
      plan: { onTerm: 'drain' } as const,
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        DRAINING('drained'),
        [`(Process may not finish any more: ${reason})`, ...STOPPED(reason, 'SIGTERM')],
        [],
      ],
    })),
    ...(['drain', 'stop', 'checkpoint'] as const).map((onTerm) => ({
      what: `${onTerm}: stated before the signal: stops at once, and only once`,
      events: [
        ready,
        stated('cancelled'),
        spawned,
        stated('cancelled'),
        signal('SIGTERM'),
        stated('cancelled'),
      ],
      plan: { onTerm },
      did: [
        ['spawn'],
        [],
        ['timer timeout 14400000'],
        ['(stopping the process: cancelled)', ...STOPPED('cancelled', 'SIGTERM')],
        ['Entrypoint received interrupt: terminated (already stopping, not passed on)'],
        [],
      ],
    })),
    ...(['drained', 'evicted'] as const).map((reason) => ({
      what: `drain: ${reason}, stated later, waits for the job`,
      events: [ready, spawned, signal('SIGTERM'), stated(reason), timer('drain')],
      plan: { onTerm: 'drain' } as const,
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        DRAINING('drained'),
        [],
        ['Process did not finish before 10m0s drain timeout', ...STOPPED(reason, 'SIGTERM')],
      ],
    })),
    {
      what: 'stop.to process: every signal of the stop goes to the command alone',
      events: [ready, spawned, signal('SIGTERM'), timer('signal1'), timer('grace')],
      plan: {
        signalTarget: 'process',
        stopSignals: [
          { signal: 'SIGINT', afterMs: 0 },
          { signal: 'SIGTERM', afterMs: 5000 },
        ],
      },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        [
          'Entrypoint received interrupt: terminated',
          'no timers',
          'tell cancelled',
          'process gets SIGINT',
          'timer signal1 5000',
          'timer grace 1800000',
          'timer deadMan 1860000',
        ],
        ['process gets SIGTERM'],
        ['Process did not exit before 30m0s grace period', ...SWEEP],
      ],
    },
    {
      what: 'stop.to process: the command first, its remaining processes after it, earlier processes at half the grace period',
      events: [
        ready,
        spawned,
        timer('timeout'),
        timer('half'),
        { kind: 'childExited', end: { code: 0, signal: null } },
        { kind: 'groupEmpty' },
        timer('half'),
      ],
      plan: { signalTarget: 'process' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        [
          'Process did not finish before 4h0m0s timeout',
          'no timers',
          'tell timeout',
          'process gets SIGINT',
          'timer half 900000',
          'timer grace 1800000',
          'timer deadMan 1860000',
        ],
        ['earlier gets SIGTERM'],
        ['group gets SIGTERM', 'awaitGroup'],
        expect.arrayContaining(['Process gracefully exited before 30m0s grace period']) as never,
        [],
      ],
    },
    {
      what: 'drain: the timeout still applies',
      events: [ready, spawned, signal('SIGTERM'), timer('timeout')],
      plan: { onTerm: 'drain' },
      did: [
        ['spawn'],
        ['timer timeout 14400000'],
        DRAINING('drained'),
        ['Process did not finish before 4h0m0s timeout', ...STOPPED('timeout', 'SIGINT')],
      ],
    },
    {
      what: 'SIGUSR1 is passed to the command while it runs',
      events: [
        { kind: 'otherSignal', signal: 'SIGUSR1' },
        ready,
        spawned,
        { kind: 'otherSignal', signal: 'SIGUSR1' },
        exited(0),
        { kind: 'otherSignal', signal: 'SIGUSR1' },
      ],
      did: [
        [],
        ['spawn'],
        ['timer timeout 14400000'],
        ['signalChild SIGUSR1'],
        ['timer deadMan 90000', ...RECORD('0 null null')],
        [],
      ],
    },
  ])('$what', ({ events, did, plan }) => {
    expect(play(events, plan).did).toEqual(did);
  });
});

describe("the dead-man's switch", () => {
  test.each<{ what: string; events: SupervisorEvent[]; did: string[]; plan?: Partial<StopPolicy> }>(
    [
      {
        what: 'a child that cannot be killed',
        events: [ready, spawned, signal('SIGTERM'), timer('grace'), timer('deadMan')],
        did: ['Could not kill process after grace period', 'abandon SIGKILL unrecorded 137'],
      },
      {
        what: 'the same after a timeout',
        events: [ready, spawned, timer('timeout'), timer('grace'), timer('deadMan')],
        did: ['Could not kill process after grace period', 'abandon 127 unrecorded 127'],
      },
      {
        what: 'a marker that cannot be written',
        events: [ready, spawned, exited(4), timer('deadMan')],
        did: ['Could not finish before the end of the budget', 'abandon 4 unrecorded 4'],
      },
      {
        what: 'remaining processes that cannot be killed, after the marker',
        events: [ready, spawned, exited(4), recorded, timer('deadMan')],
        did: ['Could not finish before the end of the budget', 'abandon 4'],
      },
      {
        what: 'cleanup, after the marker',
        events: [ready, spawned, exited(4), recorded, swept, timer('deadMan')],
        plan: { cleanup: true },
        did: ['Cleanup did not finish before 1m0s cleanup timeout', 'abandon 4'],
      },
      {
        what: 'output without a reader',
        events: [ready, spawned, exited(4), recorded, swept, timer('deadMan')],
        did: ['Could not finish before the end of the budget', 'abandon 4'],
      },
    ],
  )('$what', ({ events, did, plan }) => {
    const played = play(events, plan);
    expect(played.did.at(-1)).toEqual(did);
    expect(played.state.phase).toBe('done');
  });

  test.each([
    { plan: { signalTimeoutMs: 10_000, cleanupTimeoutMs: 5000 }, ms: 15_000 },
    { plan: { signalTimeoutMs: 0, cleanupTimeoutMs: 0 }, ms: 1000 },
  ])('$ms ms for $plan', ({ plan, ms }) => {
    expect(play([ready, spawned, signal('SIGTERM')], plan).did.at(-1)).toContain(
      `timer deadMan ${ms}`,
    );
  });

  test.each([
    { plan: { signalTimeoutMs: 15_000, cleanupTimeoutMs: 2000 }, ms: 17_000 },
    { plan: { signalTimeoutMs: 60_000, cleanupTimeoutMs: 5000 }, ms: 35_000 },
    { plan: { signalTimeoutMs: 0, cleanupTimeoutMs: 0 }, ms: 1000 },
  ])('$ms ms for the records of a command that ended by itself, for $plan', ({ plan, ms }) => {
    expect(play([ready, spawned, exited(0)], plan).did.at(-1)).toContain(`timer deadMan ${ms}`);
  });
});

describe('the reason', () => {
  test.each<{
    by: StoppingSignal;
    onTerm: StopPolicy['onTerm'];
    said?: StopReason;
    reason: StopReason;
  }>([
    { by: 'SIGTERM', onTerm: 'stop', reason: 'cancelled' },
    { by: 'SIGTERM', onTerm: 'drain', reason: 'drained' },
    { by: 'SIGTERM', onTerm: 'checkpoint', reason: 'evicted' },
    { by: 'SIGINT', onTerm: 'checkpoint', reason: 'cancelled' },
    { by: 'SIGHUP', onTerm: 'stop', reason: 'cancelled' },
    { by: 'SIGTERM', onTerm: 'stop', said: 'superseded', reason: 'superseded' },
    { by: 'SIGTERM', onTerm: 'checkpoint', said: 'cancelled', reason: 'cancelled' },
  ])('$by with onTerm $onTerm, stated $said: $reason', ({ by, onTerm, said, reason }) => {
    expect(
      play(
        [ready, spawned, ...(said === undefined ? [] : [stated(said)]), signal(by, { idle: true })],
        { onTerm },
      ).state.reason,
    ).toBe(reason);
  });

  test('stated later, it is still recorded, except for a timeout', () => {
    const late = stated('superseded');
    expect(play([ready, spawned, signal('SIGTERM'), exited(0), late, empty]).did.at(-1)).toContain(
      'record 0 null superseded',
    );
    expect(play([ready, spawned, timer('timeout'), exited(0), late, empty]).did.at(-1)).toContain(
      'record 127 null timeout',
    );
    expect(play([ready, spawned, stated('evicted'), exited(0)]).did.at(-1)).toContain(
      'record 0 null null',
    );
  });
});

test('late events change nothing', () => {
  const done = [ready, spawned, exited(0), recorded, swept];
  for (const event of [
    ready,
    spawned,
    timer('timeout'),
    timer('drain'),
    timer('grace'),
    timer('cleanup'),
    timer('signal1'),
    stated('cancelled'),
    empty,
    swept,
    recorded,
    exited(1),
    { kind: 'jobEnded' } as const,
    { kind: 'cleanupEnded' } as const,
  ]) {
    expect(play([...done, event]).did.at(-1)).toEqual([]);
  }
});
