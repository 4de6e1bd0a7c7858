/** The cost of events that arrive together, counted in visited entries, so that it does not depend on the machine. */
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
/** Maximum number of ended jobs that are remembered. */
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

/** One event of or about the runner with this index, whose job has the same number. */
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
    state.jobReports.onJobEvents([event('completed', index, nameOf(index))], NOW),
  'in_progress again': (state: SetState, index: number) =>
    state.jobReports.onJobEvents([event('in_progress', index, nameOf(index))], NOW),
  'another job': (state: SetState, index: number) =>
    state.jobReports.onJobEvents(
      [event('queued', 1_000_000 + index), event('in_progress', 1_000_000 + index, nameOf(index))],
      NOW,
    ),
  'a job of an unknown runner': (state: SetState, index: number) =>
    state.jobReports.onJobEvents(
      [event('in_progress', 2_000_000 + index, nameOf(2_000_000 + index))],
      NOW,
    ),
  'a job of another set': (state: SetState, index: number) =>
    state.jobReports.onJobEvents([event('in_progress', 3_000_000 + index, `mac-${index}`)], NOW),
  gone: (state: SetState, index: number) =>
    state.onDrainRequested([idOf(index)], [idOf(index)], NOW),
} satisfies Record<string, (state: SetState, index: number) => void>;
type Kind = keyof typeof NEWS;

interface Shape {
  readonly ephemeral: boolean;
  /** Number of runners of which one is held. */
  readonly heldEvery: number;
  /** Number of runners of which one has no job that an event named. */
  readonly unreportedEvery: number;
}

/** A set with this many busy runners that remembers the maximum number of jobs. */
function busySet(size: number, { ephemeral, heldEvery, unreportedEvery }: Shape): SetState {
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
    if (index % unreportedEvery !== 0)
      state.jobReports.onJobEvents(
        [event('queued', index), event('in_progress', index, nameOf(index))],
        AGO,
      );
    if (index % heldEvery === 0) state.holds.add(index % 2 === 0 ? idOf(index) : nameOf(index));
  }
  state.updateDemand(AGO);
  return state;
}

/** All that a set does with events that arrive together. */
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
  unreportedEvery: fc.integer({ min: 1, max: 20 }),
});
const PLAIN: Shape = { ephemeral: true, heldEvery: 10, unreportedEvery: 10 };
const KINDS = Object.keys(NEWS) as Kind[];

describe('a burst of events at the same time', () => {
  test.each(KINDS)('costs eight times as much if it is eight times as large: %s', (kind) => {
    const [few, many] = [visitsOf(100, PLAIN, [kind]) / 100, visitsOf(800, PLAIN, [kind]) / 800];
    expect(many).toBeLessThan(few * 1.2);
  });

  test('costs proportionally for every mixture', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 200 }),
        shape,
        fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 6 }),
        (size, like, kinds) => {
          // The remaining state and the details have limits of their own. A walk over all entries for each event would make each eight times as expensive.
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
  ])('a list of all runners %s costs proportionally, with a third of them gone', (_what, phase) => {
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

  test('ends of jobs without an event, and then their events, cost proportionally', () => {
    const visits = (size: number): number => {
      const state = busySet(size, { ...PLAIN, unreportedEvery: 1 });
      return countVisits(() => {
        for (const kind of ['ended', 'completed'] as const)
          for (let index = 0; index < size; index++) NEWS[kind](state, index);
        state.updateDemand(NOW);
        decideSet(state, NOW);
      });
    };
    expect(visits(800) / 800).toBeLessThan((visits(100) / 100) * 1.2);
  });

  test('carrying the state over and restoring it costs proportionally', () => {
    const visits = (size: number): number => {
      const state = busySet(size, PLAIN);
      return countVisits(() => void nextRun(state)) - MANY_OVER;
    };
    expect(visits(800) / 800).toBeLessThan((visits(100) / 100) * 1.2);
  });
});
