/** Lists of visibility are no proof: outdated or incomplete lists start no runner and stop none. */
import { describe, expect, test } from '@jest/globals';
import type { ListedRunner } from '../../../core/activities/index.ts';
import type { RunnerPhase } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { setSpec } from '../../support/setModel.ts';

const NOW = 1_000_000;
const MINUTE = 60_000;
const idOf = (letter: string): string => runnerWorkflowId('linux', letter.repeat(10));
const nameOf = (letter: string): string => `linux-${letter.repeat(10)}-0a1b2c3d4e`;
const one = (letter: string, phase: RunnerPhase = 'Idle'): ListedRunner => ({
  workflowId: idOf(letter),
  runnerName: nameOf(letter),
  phase,
  startedAt: NOW,
  templateHash: GENERATION,
  ephemeral: false,
});

const template = { organization: 'acme', ephemeral: false };
const input = { replicas: 3, template };
const GENERATION = setSpec(input).templateHash;

/** A set of three runners, of which those in `letters` run and are idle. */
function setOf(letters: string): SetState {
  const state = SetState.begin(setSpec(input), { name: 'linux', ...input }, {}, NOW);
  state.onRunnersListed([], [], NOW);
  state.onRunnersStarting(
    letters.split('').map((letter) => ({ workflowId: idOf(letter) })),
    NOW,
  );
  for (const letter of letters)
    state.onRunnerOnline({ workflowId: idOf(letter), runnerName: nameOf(letter) }, NOW);
  state.updateDemand(NOW);
  return state;
}

/** Applies a list like RunningSet, with Temporal's own record of each queried runner. */
function look(
  state: SetState,
  listed: readonly ListedRunner[],
  running: string,
  now: number,
): { queried: string[]; start: number; drain: number; knows: string[] } {
  const queried = state.unverified(listed, now);
  state.onRunnersListed(
    listed,
    queried.filter(
      (workflowId) => !running.split('').some((letter) => idOf(letter) === workflowId),
    ),
    now,
  );
  state.updateDemand(now);
  const { start, drain } = decideSet(state, now);
  return {
    queried,
    start,
    drain: drain.length,
    knows: state.runners.all().map(({ workflowId }) => workflowId),
  };
}

describe.each<
  [
    string,
    readonly ListedRunner[],
    { known: string; running: string; queried: string; start: number },
  ]
>([
  [
    'that is current',
    [one('a'), one('b'), one('c')],
    { known: 'abc', running: 'abc', queried: '', start: 0 },
  ],
  [
    'that is a minute behind and still empty',
    [],
    { known: 'abc', running: 'abc', queried: 'abc', start: 0 },
  ],
  ['that is incomplete', [one('a')], { known: 'abc', running: 'abc', queried: 'bc', start: 0 }],
  [
    'that is incomplete, while one runner has ended without an event',
    [one('a')],
    { known: 'abc', running: 'ac', queried: 'bc', start: 1 },
  ],
  [
    'with a runner whose end the set knows',
    [one('a'), one('b'), one('c'), one('z')],
    { known: 'abc', running: 'abc', queried: 'z', start: 0 },
  ],
  [
    'with such a runner while another one is missing',
    [one('a'), one('b'), one('z')],
    { known: 'ab', running: 'ab', queried: 'z', start: 1 },
  ],
  [
    'with only such runners',
    [one('x', 'Busy'), one('y', 'Draining'), one('z', 'Requested')],
    { known: '', running: '', queried: 'xyz', start: 3 },
  ],
  [
    'with a running runner that the set did not know',
    [one('a'), one('b'), one('d')],
    { known: 'ab', running: 'abd', queried: 'd', start: 0 },
  ],
  [
    'with outdated phases',
    [one('a', 'Registering'), one('b', 'Requested'), one('c', 'Provisioning')],
    { known: 'abc', running: 'abc', queried: '', start: 0 },
  ],
])('a list %s', (_what, listed, { known, running, queried, start }) => {
  test('starts exactly the missing runners, and drains none', () => {
    const looked = look(setOf(known), listed, running, NOW + MINUTE);
    expect(looked).toEqual({
      queried: queried.split('').map(idOf),
      start,
      drain: 0,
      knows: running.split('').map(idOf),
    });
  });
});

test('a runner that has just ended is not queried again while lists have it within a minute', () => {
  const state = setOf('abc');
  state.onRunnerEnded(
    {
      workflowId: idOf('a'),
      runnerName: nameOf('a'),
      outcome: 'succeeded',
      wasOnline: true,
      ranJob: false,
    },
    NOW,
  );
  state.updateDemand(NOW);
  expect(look(state, [one('a'), one('b'), one('c')], 'bc', NOW + MINUTE / 2)).toEqual({
    queried: [],
    start: 1,
    drain: 0,
    knows: ['b', 'c'].map(idOf),
  });
});

describe('while a list is pending', () => {
  const later = NOW + MINUTE;

  /** A set of three that has two runners and a pending list. */
  function awaiting(letters = 'ab'): SetState {
    const state = setOf(letters);
    state.onListStarted(later);
    state.updateDemand(later);
    return state;
  }

  test('missing runners are started, and no other list is requested', () => {
    expect(decideSet(awaiting(), later)).toMatchObject({ start: 1, listRunners: false });
  });

  test('a new set starts no runner, because runners of an earlier set with its name may exist', () => {
    const state = SetState.begin(setSpec(input), { name: 'linux', ...input }, {}, NOW);
    state.onListStarted(NOW);
    expect(decideSet(state, NOW).start).toBe(0);
    expect(setStatus(state, NOW)).toMatchObject({
      listPendingSince: new Date(NOW).toISOString(),
      waitingFor: expect.stringContaining('3 runners are not started') as unknown,
    });
  });

  test('no surplus runner is drained, and the status shows that', () => {
    const state = awaiting('abcd');
    state.updateDemand(later + 20 * MINUTE);
    expect(decideSet(state, later + 20 * MINUTE)).toMatchObject({ drain: [], listRunners: false });
    expect(setStatus(state, later + 20 * MINUTE)).toMatchObject({
      waitingFor: expect.stringContaining('1 runners are not drained') as unknown,
    });
    state.onRunnersListed(
      ['a', 'b', 'c', 'd'].map((letter) => one(letter)),
      [],
      later + 20 * MINUTE,
    );
    expect(decideSet(state, later + 20 * MINUTE).drain).toHaveLength(1);
  });

  test('all runners of a set that ends are drained, and it does not end before the list arrives', () => {
    const state = awaiting();
    state.end('test');
    expect(decideSet(state, later).drain).toHaveLength(2);
    for (const letter of 'ab')
      state.onRunnerEnded(
        {
          workflowId: idOf(letter),
          runnerName: nameOf(letter),
          outcome: 'aborted',
          wasOnline: true,
          ranJob: false,
        },
        later,
      );
    expect(decideSet(state, later)).toMatchObject({ ended: false, listRunners: false });
    // It was requested before the set was ended, so it proves nothing.
    state.onRunnersListed([], [], later);
    expect(decideSet(state, later)).toMatchObject({ ended: false, listRunners: true });
    state.onListStarted(later);
    state.onRunnersListed([], [], later);
    expect(decideSet(state, later).ended).toBe(true);
  });

  test('a list that fails is requested again', () => {
    const state = awaiting();
    state.onListFailed();
    expect(decideSet(state, later).listRunners).toBe(true);
  });
});

test('a set whose max is 0 reports that', () => {
  const closed = { minIdle: 0, max: 0, template };
  const state = SetState.begin(setSpec(closed), { name: 'linux', ...closed }, {}, NOW);
  state.onRunnersListed([], [], NOW);
  expect(setStatus(state, NOW).waitingFor).toBe('max: 0: no runner is started');
});
