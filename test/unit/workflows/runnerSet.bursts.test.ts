/** What a moment's news costs a set: counted in entries that are visited, so that no machine's pace is in it. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JobEvent } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import type { CarriedSetState } from '../../../workflows/runnerSet/carriedState.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setDetails } from '../../../workflows/runnerSet/status.ts';
import { countVisits } from '../../support/countVisits.ts';
import { setSpec } from '../../support/setModel.ts';
import { nextRun } from '../../support/nextRun.ts';

const NOW = 1_800_000_000_000;
const AGO = NOW - 3_600_000;
/** Jobs that are remembered after their end, at the most. */
const MANY_OVER = 20_000;

const suffixOf = (index: number): string => `r${String(index).padStart(9, '0')}`;
const idOf = (index: number): string => runnerWorkflowId('linux', suffixOf(index));
const nameOf = (index: number): string => `linux-${suffixOf(index)}-0a1b2c3d4e`;
const event = (action: JobEvent['action'], jobId: number, runnerName?: string): JobEvent => ({
  action,
  jobId: String(jobId),
  runAttempt: 1,
  repository: 'acme/app',
  labels: [],
  at: AGO,
  ...(runnerName === undefined ? {} : { runnerName }),
});

/** One piece of news of or about the runner of this index, whose job has its number. */
const NEWS = {
  ended: (state: SetState, index: number) =>
    state.onRunnerEnded(
      {
        workflowId: idOf(index),
        runnerName: nameOf(index),
        outcome: 'succeeded',
        wasOnline: true,
        ranJob: true,
      },
      NOW,
    ),
  'ended before its completion': (state: SetState, index: number) => {
    NEWS.ended(state, index);
    NEWS.completed(state, index);
  },
  online: (state: SetState, index: number) =>
    state.onRunnerOnline({ workflowId: idOf(index), runnerName: nameOf(index) }, NOW),
  busy: (state: SetState, index: number) =>
    state.onRunnerBusy({ workflowId: idOf(index), runnerName: nameOf(index) }, NOW),
  'busy, of an unknown runner': (state: SetState, index: number) =>
    state.onRunnerBusy(
      { workflowId: idOf(2_000_000 + index), runnerName: nameOf(2_000_000 + index) },
      NOW,
    ),
  completed: (state: SetState, index: number) =>
    state.jobEvents([event('completed', index, nameOf(index))], NOW),
  'in_progress again': (state: SetState, index: number) =>
    state.jobEvents([event('in_progress', index, nameOf(index))], NOW),
  'another job': (state: SetState, index: number) =>
    state.jobEvents(
      [event('queued', 1_000_000 + index), event('in_progress', 1_000_000 + index, nameOf(index))],
      NOW,
    ),
  'a job of an unknown runner': (state: SetState, index: number) =>
    state.jobEvents([event('in_progress', 2_000_000 + index, nameOf(2_000_000 + index))], NOW),
  'a job of another set': (state: SetState, index: number) =>
    state.jobEvents([event('in_progress', 3_000_000 + index, `mac-${index}`)], NOW),
  gone: (state: SetState, index: number) =>
    state.onDrainRequested([idOf(index)], [idOf(index)], NOW),
} satisfies Record<string, (state: SetState, index: number) => void>;
type Kind = keyof typeof NEWS;

interface Shape {
  readonly ephemeral: boolean;
  /** Every so many runners one is held. */
  readonly heldEvery: number;
  /** Every so many runners one has no job that an event told of. */
  readonly untoldEvery: number;
}

/** A set of so many busy runners, that remembers as many jobs as it may. */
function busySet(size: number, { ephemeral, heldEvery, untoldEvery }: Shape): SetState {
  const template = { organization: 'acme', ephemeral };
  const input = { minIdle: 0, max: 5_000, template };
  const begun = SetState.begin(setSpec(input), { name: 'linux', ...input }, {}, AGO);
  begun.onRunnersListed([], [], AGO);
  const over = Array.from({ length: MANY_OVER }, (_none, index) => `${4_000_000 + index}/1`);
  const carried: CarriedSetState = {
    ...begun.carry(),
    jobs: {
      active: [],
      names: [],
      completed: [[AGO / 60_000, over]],
      startedTotal: 0,
      completedTotal: 0,
    },
  };
  const { spec, schedule } = begun.facts;
  const declaration = begun.currentDeclaration();
  const state = SetState.restore(carried, { spec, declaration, schedule, at: AGO });
  const indexes = Array.from({ length: size }, (_none, index) => index);
  state.onRunnersStarting(
    indexes.map((index) => ({ workflowId: idOf(index) })),
    AGO,
  );
  for (const index of indexes) {
    state.onRunnerOnline({ workflowId: idOf(index), runnerName: nameOf(index) }, AGO);
    if (index % untoldEvery !== 0)
      state.jobEvents([event('queued', index), event('in_progress', index, nameOf(index))], AGO);
    if (index % heldEvery === 0) state.holds.add(index % 2 === 0 ? idOf(index) : nameOf(index));
  }
  state.updateDemand(AGO);
  return state;
}

/** All that a set does with the news of one moment. */
function visitsOf(size: number, shape: Shape, kinds: readonly Kind[]): number {
  const state = busySet(size, shape);
  return countVisits(() => {
    for (let index = 0; index < size; index++)
      NEWS[kinds[index % kinds.length] as Kind](state, index);
    state.updateDemand(NOW);
    decideSet(state, NOW);
    setDetails(state, NOW);
  });
}

const shape = fc.record({
  ephemeral: fc.boolean(),
  heldEvery: fc.integer({ min: 1, max: 20 }),
  untoldEvery: fc.integer({ min: 1, max: 20 }),
});
const PLAIN: Shape = { ephemeral: true, heldEvery: 10, untoldEvery: 10 };
const KINDS = Object.keys(NEWS) as Kind[];

describe('a burst of news in one moment', () => {
  test.each(KINDS)('eight times as much costs eight times as much: %s', (kind) => {
    const [few, many] = [visitsOf(100, PLAIN, [kind]) / 100, visitsOf(800, PLAIN, [kind]) / 800];
    expect(many).toBeLessThan(few * 1.2);
  });

  test('so does any mixture of it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 200 }),
        shape,
        fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 6 }),
        (size, like, kinds) => {
          // What is left of a mixture, and shown, has bounds of its own; a walk over all for each piece would make each eight times as dear.
          expect(visitsOf(size * 8, like, kinds) / (size * 8)).toBeLessThan(
            (visitsOf(size, like, kinds) / size) * 2,
          );
        },
      ),
      { numRuns: 15 },
    );
  });

  test.each([
    ['as idle', 'Idle' as const],
    ['as busy', 'Busy' as const],
  ])('so does a list of all runners %s, a third of which are gone', (_what, phase) => {
    const visits = (size: number): number => {
      const state = busySet(size, PLAIN);
      const listed = Array.from({ length: size }, (_none, index) => ({
        workflowId: idOf(index),
        runnerName: nameOf(index),
        phase,
        startedAt: AGO,
      }));
      const gone = listed
        .filter((_one, index) => index % 3 === 0)
        .map(({ workflowId }) => workflowId);
      return countVisits(() => {
        state.unverified(listed.slice(0, size / 2), NOW);
        state.onRunnersListed(listed, gone, NOW);
        state.updateDemand(NOW);
        decideSet(state, NOW);
      });
    };
    expect(visits(800) / 800).toBeLessThan((visits(100) / 100) * 1.2);
  });

  test('so do ends of jobs of which no event had told, and then their events', () => {
    const visits = (size: number): number => {
      const state = busySet(size, { ...PLAIN, untoldEvery: 1 });
      return countVisits(() => {
        for (const kind of ['ended', 'completed'] as const)
          for (let index = 0; index < size; index++) NEWS[kind](state, index);
        state.updateDemand(NOW);
        decideSet(state, NOW);
      });
    };
    expect(visits(800) / 800).toBeLessThan((visits(100) / 100) * 1.2);
  });

  test('and carrying all of it over, and taking it up again', () => {
    const visits = (size: number): number => {
      const state = busySet(size, PLAIN);
      return countVisits(() => void nextRun(state)) - MANY_OVER;
    };
    expect(visits(800) / 800).toBeLessThan((visits(100) / 100) * 1.2);
  });
});
