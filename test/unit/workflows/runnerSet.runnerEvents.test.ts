/** Events of runners that a set accepts. */
import { expect, test } from '@jest/globals';
import type { TimedRunnerEvent } from '../../../core/contract/index.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { parseRunnerEvents, applyRunnerEvents } from '../../../workflows/runnerSet/runnerEvents.ts';
import { setSpec } from '../../support/setModel.ts';

const runner = { workflowId: 'runner-linux-aaaaaaaaaa', runnerName: 'linux-aaaaaaaaaa-0a1b2c3d4e' };
const ended: TimedRunnerEvent = {
  kind: 'ended',
  ...runner,
  at: 30,
  outcome: 'errored',
  cause: 'evicted',
  wasOnline: true,
  ranJob: false,
};

test('events are applied in the order in which they were sent', () => {
  const spec = setSpec({ replicas: 1 });
  const state = SetState.begin(
    spec,
    { name: 'linux', template: { organization: 'acme' }, replicas: 1 },
    {},
    1,
  );
  state.onRunnersStarting([{ workflowId: runner.workflowId }], 1);
  const events = parseRunnerEvents({
    events: [ended, { kind: 'busy', ...runner, at: 20 }, { kind: 'online', ...runner, at: 10 }],
  });
  expect(events.map(({ kind }) => kind)).toEqual(['online', 'busy', 'ended']);
  applyRunnerEvents(state, events.slice(0, 2), 20);
  expect(state.runners.get(runner.workflowId)).toMatchObject({
    state: 'busy',
    runnerName: runner.runnerName,
  });
  applyRunnerEvents(state, events.slice(2), 30);
  expect(state.runners.all()).toEqual([]);
});

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a list', [ended]],
  ['no list', { events: 'ended' }],
  ['null in the list', { events: [null, 7, 'ended'] }],
  ['another kind', { events: [{ ...ended, kind: 'constructor' }] }],
  ['no kind', { events: [{ ...runner, at: 1 }] }],
  ['no runner', { events: [{ kind: 'online', at: 1, runnerName: 'linux' }] }],
  ['an invalid name', { events: [{ kind: 'online', ...runner, runnerName: 7, at: 1 }] }],
  ['no time', { events: [{ kind: 'online', ...runner }] }],
  [
    'an invalid time',
    {
      events: [
        { kind: 'online', ...runner, at: '1' },
        ...[Number.NaN, -9e15, -1, 9e15, 1e300].map((at) => ({ kind: 'online', ...runner, at })),
      ],
    },
  ],
  [
    'an end without an outcome',
    { events: [{ kind: 'ended', ...runner, at: 1, wasOnline: true, ranJob: true }] },
  ],
  ['an invalid outcome', { events: [{ ...ended, outcome: 'won' }] }],
  ['an invalid cause', { events: [{ ...ended, cause: '| a table' }] }],
  ['a message that is not a string', { events: [{ ...ended, message: 7 }] }],
  ['a message that is too long', { events: [{ ...ended, message: 'x'.repeat(501) }] }],
  ['an invalid boolean', { events: [{ ...ended, ranJob: 'yes' }] }],
])('%s is dropped, and does not stop the set', (_what, body) => {
  expect(parseRunnerEvents(body)).toEqual([]);
});

test('the valid events of a signal are applied', () => {
  expect(parseRunnerEvents({ events: [{}, ended] })).toEqual([ended]);
});
