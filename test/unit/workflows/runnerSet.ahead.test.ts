/** Replace-ahead: the successor of a runner is started when its job starts, whoever tells that it does. */
import { describe, expect, test } from '@jest/globals';
import type { RunnerSetInput } from '../../../core/contract/index.ts';
import {
  mayNotifyEndEarly,
  mayNotifyEndLate,
  needsBusyEvents,
} from '../../../workflows/runnerSet/decide.ts';
import { SetModel } from '../../support/setModel.ts';

const template = { organization: 'acme' };
const HOUR = 3_600_000;

/** All that are there are online. */
function ready(input: Partial<RunnerSetInput>): SetModel {
  const model = new SetModel({ name: 'linux', template, ...input });
  comeUp(model);
  return model;
}
function comeUp(model: SetModel): void {
  model.step();
  for (const runner of model.runners.values()) model.comeUp(runner);
  model.step();
}
/** So many of them take a job. @param heard - its events arrive */
function takeJobs(model: SetModel, count: number, heard: boolean): void {
  for (let job = 0; job < count; job++) model.queueJob();
  if (heard) for (const event of model.mail.splice(0)) model.deliver(event);
  for (const runner of model.runners.values()) model.takeJob(runner);
  const events = model.mail.splice(0);
  if (heard) for (const event of events) model.deliver(event);
  model.step();
}
const phases = (model: SetModel): string[] =>
  [...model.runners.values()].map(({ phase }) => phase).toSorted();

describe.each([
  ['by its own word', false],
  ['by its event', true],
])('a job starts, as is told %s', (_how, heard) => {
  test.each<[string, Partial<RunnerSetInput>, number, number, string[]]>([
    ['a fixed number alone starts nobody', { replicas: 2 }, 2, 1, ['Busy', 'Idle']],
    [
      'a fixed number with successors ahead',
      { replicas: 2, replaceAhead: 1 },
      2,
      1,
      ['Busy', 'Idle', 'Provisioning'],
    ],
    [
      'so many of them and no more',
      { replicas: 2, replaceAhead: 1 },
      2,
      2,
      ['Busy', 'Busy', 'Provisioning'],
    ],
    ['idle ones that are kept', { minIdle: 1, max: 5 }, 1, 1, ['Busy', 'Provisioning']],
    ['the most holds', { minIdle: 2, max: 3 }, 2, 2, ['Busy', 'Busy', 'Provisioning']],
    [
      'one kept, more ahead',
      { minIdle: 2, max: 9, replaceAhead: 3 },
      2,
      2,
      ['Busy', 'Busy', 'Provisioning', 'Provisioning'],
    ],
  ])('%s', (_what, input, before, jobs, after) => {
    const model = ready(input);
    expect(model.count('Idle')).toBe(before);
    takeJobs(model, jobs, heard);
    expect(phases(model)).toEqual(after);
  });
});

test('the next job finds the successor ready: when the first ends, another takes the one that is started for the one that then is', () => {
  const model = ready({ replicas: 1, replaceAhead: 1 });
  for (let job = 0; job < 5; job++) {
    takeJobs(model, 1, false);
    comeUp(model);
    expect(phases(model)).toEqual(['Busy', 'Idle']);
    for (const runner of model.runners.values()) model.finishJob(runner);
    model.mail.splice(0);
    model.step();
    expect(phases(model)).toEqual(['Idle']);
  }
  expect({ started: model.said.start, said: model.said.busy }).toEqual({ started: 6, said: 5 });
});

test('a list that has not heard yet that its job has started does not make it idle', () => {
  const model = ready({ replicas: 1, replaceAhead: 1 });
  takeJobs(model, 1, false);
  const [busy] = model.state.runners.all();
  const list = (laterMs: number): string | undefined => {
    model.state.onRunnersListed(
      [{ workflowId: busy?.workflowId ?? '', phase: 'Idle', startedAt: 0 }],
      [],
      model.now + laterMs,
    );
    return busy?.state;
  };
  expect([list(0), list(20_000), list(30_000)]).toEqual(['busy', 'busy', 'idle']);
});

test('its word that its job has started may come before that it is online', () => {
  const model = new SetModel({ name: 'linux', template, replicas: 1, replaceAhead: 1 });
  const [runner] = [...model.runners.values()];
  if (runner === undefined) throw new Error('no runner');
  const news = { workflowId: runner.workflowId, runnerName: runner.name };
  model.state.onRunnerBusy(news, model.now);
  model.state.onRunnerOnline(news, model.now);
  expect(model.state.runners.get(runner.workflowId)?.state).toBe('busy');
});

describe('who has to tell that its job starts', () => {
  const claim = { name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' };
  test.each<[string, Partial<RunnerSetInput>, boolean]>([
    ['runners of a fixed number', { replicas: 1 }, false],
    ['those with successors ahead', { replicas: 1, replaceAhead: 1 }, true],
    ['those of which none is kept idle', { minIdle: 0, max: 3 }, false],
    ['those of which some are', { minIdle: 1, max: 3 }, true],
    [
      'static ones, which would have to tell the end, too',
      { minIdle: 1, max: 3, template: { ...template, ephemeral: false } },
      false,
    ],
    [
      'those with slots',
      { minIdle: 1, max: 3, template: { ...template, volumeClaims: [claim] } },
      false,
    ],
    [
      'plain commands',
      { minIdle: 1, max: 3, template: { ciServer: 'none', command: ['true'] } as never },
      false,
    ],
  ])('%s: %s', (_what, input, tells) => {
    const { state, now } = new SetModel({ name: 'linux', template, ...input });
    expect(needsBusyEvents(state, now)).toBe(tells);
  });

  test('nobody where events tell; everybody again when none has come for a day', () => {
    const model = ready({ replicas: 1, replaceAhead: 1 });
    takeJobs(model, 1, true);
    expect(
      [0, 23 * HOUR, 24 * HOUR].map((later) => needsBusyEvents(model.state, model.now + later)),
    ).toEqual([false, false, true]);
  });
});

test.each<[string, Partial<RunnerSetInput>, boolean]>([
  ['a fixed number', { replicas: 2 }, true],
  ['a bound that counts pods', { minIdle: 0, max: 2 }, false],
  [
    'slots, whose volumes the next runner has',
    {
      replicas: 2,
      template: {
        ...template,
        volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' }],
      },
    },
    false,
  ],
])('runners tell of their end before their pods are gone: %s', (_what, size, early) => {
  const { state } = new SetModel({ name: 'linux', template, ...size });
  expect(mayNotifyEndEarly(state)).toBe(early);
});

test.each<[string, Partial<RunnerSetInput>, boolean]>([
  ['one that follows its jobs', { minIdle: 0, max: 2 }, true],
  ['one that is full', { minIdle: 0, max: 0 }, false],
  ['one that keeps idle runners', { minIdle: 1, max: 3 }, false],
  ['a fixed number', { replicas: 2 }, false],
])('the end of a runner may reach its set late: %s', (_what, size, late) => {
  const { state } = new SetModel({ name: 'linux', template, ...size });
  expect(mayNotifyEndLate(state)).toBe(late);
});
