/** Replace-ahead: the successor of a runner is started when its job starts, no matter which source reports that. */
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

/** Brings all existing runners online. */
function ready(input: Partial<RunnerSetInput>): SetModel {
  const model = new SetModel({ name: 'linux', template, ...input });
  comeOnline(model);
  return model;
}
function comeOnline(model: SetModel): void {
  model.step();
  for (const runner of model.runners.values()) model.comeOnline(runner);
  model.step();
}
/** Lets this many of them take a job. @param eventsArrive - its events arrive */
function takeJobs(model: SetModel, count: number, eventsArrive: boolean): void {
  for (let job = 0; job < count; job++) model.queueJob();
  if (eventsArrive) for (const event of model.mail.splice(0)) model.deliver(event);
  for (const runner of model.runners.values()) model.takeJob(runner);
  const events = model.mail.splice(0);
  if (eventsArrive) for (const event of events) model.deliver(event);
  model.step();
}
const phases = (model: SetModel): string[] =>
  [...model.runners.values()].map(({ phase }) => phase).toSorted();

describe.each([
  ['by the runner', false],
  ['by an event', true],
])('a job starts, as reported %s', (_how, eventsArrive) => {
  test.each<[string, Partial<RunnerSetInput>, number, number, string[]]>([
    [
      'a fixed number without replaceAhead starts no runner',
      { replicas: 2 },
      2,
      1,
      ['Busy', 'Idle'],
    ],
    [
      'a fixed number with successors ahead',
      { replicas: 2, replaceAhead: 1 },
      2,
      1,
      ['Busy', 'Idle', 'Provisioning'],
    ],
    [
      'no more than replaceAhead',
      { replicas: 2, replaceAhead: 1 },
      2,
      2,
      ['Busy', 'Busy', 'Provisioning'],
    ],
    ['minIdle', { minIdle: 1, max: 5 }, 1, 1, ['Busy', 'Provisioning']],
    ['max is not exceeded', { minIdle: 2, max: 3 }, 2, 2, ['Busy', 'Busy', 'Provisioning']],
    [
      'minIdle and replaceAhead',
      { minIdle: 2, max: 9, replaceAhead: 3 },
      2,
      2,
      ['Busy', 'Busy', 'Provisioning', 'Provisioning'],
    ],
  ])('%s', (_what, input, before, jobs, after) => {
    const model = ready(input);
    expect(model.count('Idle')).toBe(before);
    takeJobs(model, jobs, eventsArrive);
    expect(phases(model)).toEqual(after);
  });
});

test('the next job takes the ready successor, for which another one is started', () => {
  const model = ready({ replicas: 1, replaceAhead: 1 });
  for (let job = 0; job < 5; job++) {
    takeJobs(model, 1, false);
    comeOnline(model);
    expect(phases(model)).toEqual(['Busy', 'Idle']);
    for (const runner of model.runners.values()) model.finishJob(runner);
    model.mail.splice(0);
    model.step();
    expect(phases(model)).toEqual(['Idle']);
  }
  expect({ started: model.sent.start, sent: model.sent.busy }).toEqual({ started: 6, sent: 5 });
});

test('a list from before the start of its job does not make it idle', () => {
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

test('its busy event may arrive before its online event', () => {
  const model = new SetModel({ name: 'linux', template, replicas: 1, replaceAhead: 1 });
  const [runner] = [...model.runners.values()];
  if (runner === undefined) throw new Error('no runner');
  const event = { workflowId: runner.workflowId, runnerName: runner.name };
  model.state.onRunnerBusy(event, model.now);
  model.state.onRunnerOnline(event, model.now);
  expect(model.state.runners.get(runner.workflowId)?.state).toBe('busy');
});

describe('runners that must report the start of a job', () => {
  const claim = { name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' };
  test.each<[string, Partial<RunnerSetInput>, boolean]>([
    ['a fixed number', { replicas: 1 }, false],
    ['a fixed number with replaceAhead', { replicas: 1, replaceAhead: 1 }, true],
    ['no idle runners', { minIdle: 0, max: 3 }, false],
    ['some idle runners', { minIdle: 1, max: 3 }, true],
    [
      'static runners, which would also have to report the end',
      { minIdle: 1, max: 3, template: { ...template, ephemeral: false } },
      false,
    ],
    ['slots', { minIdle: 1, max: 3, template: { ...template, volumeClaims: [claim] } }, false],
    [
      'plain commands',
      { minIdle: 1, max: 3, template: { ciServer: 'none', command: ['true'] } as never },
      false,
    ],
  ])('%s: %s', (_what, input, expected) => {
    const { state, now } = new SetModel({ name: 'linux', template, ...input });
    expect(needsBusyEvents(state, now)).toBe(expected);
  });

  test('none if events arrive; all again after a day without an event', () => {
    const model = ready({ replicas: 1, replaceAhead: 1 });
    takeJobs(model, 1, true);
    expect(
      [0, 23 * HOUR, 24 * HOUR].map((later) => needsBusyEvents(model.state, model.now + later)),
    ).toEqual([false, false, true]);
  });
});

test.each<[string, Partial<RunnerSetInput>, boolean]>([
  ['a fixed number', { replicas: 2 }, true],
  ['a maximum that counts pods', { minIdle: 0, max: 2 }, false],
  [
    'slots, whose volumes the next runner uses',
    {
      replicas: 2,
      template: {
        ...template,
        volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' }],
      },
    },
    false,
  ],
])('runners may report their end before their pods are gone: %s', (_what, size, early) => {
  const { state } = new SetModel({ name: 'linux', template, ...size });
  expect(mayNotifyEndEarly(state)).toBe(early);
});

test.each<[string, Partial<RunnerSetInput>, boolean]>([
  ['a set that follows its jobs', { minIdle: 0, max: 2 }, true],
  ['a set at its capacity', { minIdle: 0, max: 0 }, false],
  ['a set that keeps idle runners', { minIdle: 1, max: 3 }, false],
  ['a fixed number', { replicas: 2 }, false],
])('a runner may report its end late: %s', (_what, size, late) => {
  const { state } = new SetModel({ name: 'linux', template, ...size });
  expect(mayNotifyEndLate(state)).toBe(late);
});
