/** The next action of a job, as a table. */
import { describe, expect, test } from '@jest/globals';
import type { Cancellation } from '../../../core/domain/cancellation.ts';
import {
  nextAction,
  type JobFacts,
  type JobAction,
  type StepFacts,
} from '../../../workflows/job/plan.ts';

const NOW = 1_000_000;
type StateName =
  | 'waiting'
  | 'running'
  | 'stopping'
  | 'killed'
  | 'going'
  | 'ok'
  | 'failed'
  | 'errored'
  | 'aborted'
  | 'skipped'
  | 'not_run';

/** The time until which an action waits, in ms. */
const untilOf = (action: JobAction): number | undefined =>
  action.kind === 'wait' ? action.untilMs : undefined;

/** Steps written as `pre:ok test:running post:waiting`; flags of a post step after a slash: `post:waiting/optional`. */
function steps(text: string): StepFacts[] {
  return text.split(' ').map((each, index) => {
    const [stage = '', rest = ''] = each.split(':');
    const [state, flag] = rest.split('/') as [StateName, string?];
    const base = {
      stage: stage as StepFacts['stage'],
      name: `s${index}`,
      bestEffort: flag === 'bestEffort',
      skipOnSuccess: flag === 'optional',
      isRunning: false,
    };
    switch (state) {
      case 'waiting':
      case 'running':
      case 'skipped':
      case 'not_run':
        return { ...base, state };
      case 'stopping':
        return { ...base, state: 'running', stopRequested: 'stop' };
      case 'killed':
        return { ...base, state: 'running', stopRequested: 'force' };
      case 'going':
        return { ...base, state: 'ended', outcome: 'succeeded', isRunning: true };
      case 'ok':
        return { ...base, state: 'ended', outcome: 'succeeded' };
      case 'errored':
        return { ...base, state: 'ended', outcome: 'errored', cause: 'evicted' };
      case 'aborted':
        return { ...base, state: 'ended', outcome: 'aborted', cause: 'run_timeout' };
      case 'failed':
        return { ...base, state: 'ended', outcome: 'failed' };
    }
  });
}

const cancel = (
  mode: Cancellation['mode'],
  by: Cancellation['by'] = 'cancelled',
): Partial<JobFacts> => ({
  cancel: { mode, by, reason: 'why' },
  ...(mode === 'drain' ? {} : { graceEndsAtMs: NOW + 100 }),
});
const STOP = cancel('stop');
const DRAIN = cancel('drain');
const FORCE = cancel('force');
const GRACE_OVER: Partial<JobFacts> = { ...STOP, graceEndsAtMs: NOW };
const OUT_OF_GRACE: Partial<JobFacts> = { ...GRACE_OVER, outOfGrace: true };

const decide = (text: string, more: Partial<JobFacts> = {}): JobAction =>
  nextAction({
    steps: steps(text),
    nowMs: NOW,
    maxDurationDeadlineMs: NOW + 1_000,
    outOfGrace: false,
    ...more,
  });
const start = (step: number) => ({ kind: 'start', step });
const notRun = (step: number, why: string) => ({
  kind: 'leave',
  step,
  state: 'not_run',
  reason: expect.stringContaining(why),
});

describe('without an interruption', () => {
  test.each<[what: string, steps: string, expected: object]>([
    ['the first step starts first', 'pre:waiting test:waiting', start(0)],
    ['without pre steps test starts', 'test:waiting post:waiting', start(0)],
    [
      'one step runs at a time',
      'test:running test:waiting',
      { kind: 'wait', step: 0, untilMs: NOW + 1_000 },
    ],
    ['the next step of the stage', 'test:ok test:waiting', start(1)],
    ['the next stage', 'pre:ok test:waiting', start(1)],
    [
      'a pre step failed: no more pre steps',
      'pre:failed pre:waiting test:waiting post:waiting',
      notRun(1, 'pre s0 failed'),
    ],
    [
      '… and no test steps',
      'pre:failed pre:skipped test:waiting post:waiting',
      notRun(2, 'pre s0 failed'),
    ],
    ['… but post steps', 'pre:failed test:skipped post:waiting', start(2)],
    [
      'an infrastructure error ends a stage like a failure',
      'test:errored test:waiting post:waiting',
      notRun(1, 'test s0 errored'),
    ],
    [
      '… and so does a timeout of the step',
      'test:aborted test:waiting post:waiting',
      notRun(1, 'test s0 aborted'),
    ],
    [
      'the post stage continues after a failed post step',
      'test:ok post:failed post:waiting',
      start(2),
    ],
    [
      'skipOnSuccess, all earlier steps succeeded',
      'test:ok post:waiting/optional',
      { kind: 'leave', step: 1, state: 'skipped' },
    ],
    [
      '… a skipped step counts as succeeded',
      'test:ok post:skipped post:waiting/optional',
      { kind: 'leave', step: 2, state: 'skipped' },
    ],
    ['… a test step failed', 'test:failed post:waiting/optional', start(1)],
    ['… a step of post failed', 'test:ok post:failed post:waiting/optional', start(2)],
    [
      '… a best-effort step failed',
      'test:ok post:failed/bestEffort post:waiting/optional',
      start(2),
    ],
  ])('%s', (_what, text, expected) => {
    expect(decide(text)).toMatchObject(expected);
  });
});

describe('a step has ended, and its pod is being deleted', () => {
  const killed = { ...steps('test:going')[0], stopRequested: 'force' } as StepFacts;
  test.each<[what: string, steps: string, more: Partial<JobFacts>, expected: object]>([
    ['the next step starts', 'pre:going test:waiting', {}, start(1)],
    [
      'no step is left: the job waits for the pod, despite deadlines',
      'pre:ok test:going',
      { timeoutAtMs: NOW, maxDurationDeadlineMs: NOW },
      { kind: 'wait', step: 1 },
    ],
    [
      '… also after the grace period',
      'test:ok post:going',
      OUT_OF_GRACE,
      { kind: 'wait', step: 1 },
    ],
    ['… a forced cancel kills it', 'test:going', FORCE, { kind: 'stop', step: 0, mode: 'force' }],
    ['… once', '', { ...FORCE, steps: [killed] }, { kind: 'wait', step: 0 }],
    [
      '… also if it came after the end of the step',
      'test:going',
      { lateCancel: FORCE.cancel! },
      { kind: 'stop', step: 0, mode: 'force' },
    ],
    ['… a stop does not change it', 'test:going', STOP, { kind: 'wait', step: 0 }],
  ])('%s', (_what, text, more, expected) => {
    const action = decide(text, more);
    expect(action).toMatchObject(expected);
    expect(untilOf(action)).toBeUndefined();
  });
});

describe('deadlines', () => {
  test.each<[what: string, steps: string, more: Partial<JobFacts>, expected: object]>([
    ['queued: only maxAge counts', 'test:running', {}, { kind: 'wait', untilMs: NOW + 1_000 }],
    [
      'its timeout has started',
      'test:running',
      { timeoutAtMs: NOW + 10 },
      { kind: 'wait', untilMs: NOW + 10 },
    ],
    [
      'the timeout, in test',
      'test:running post:waiting',
      { timeoutAtMs: NOW },
      { kind: 'interrupt', deadline: 'timeout' },
    ],
    [
      '… in post',
      'test:ok post:running',
      { timeoutAtMs: NOW },
      { kind: 'interrupt', deadline: 'timeout' },
    ],
    [
      '… between two steps',
      'pre:ok test:waiting',
      { timeoutAtMs: NOW },
      { kind: 'interrupt', deadline: 'timeout' },
    ],
    [
      '… of a job that drains',
      'test:running',
      { ...DRAIN, timeoutAtMs: NOW },
      { kind: 'interrupt', deadline: 'timeout' },
    ],
    ['… after all steps have ended: ignored', 'test:ok', { timeoutAtMs: NOW }, { kind: 'end' }],
    [
      '… after an interruption: ignored',
      'test:stopping',
      { ...STOP, timeoutAtMs: NOW },
      { kind: 'wait', untilMs: NOW + 100 },
    ],
    [
      'maxAge while it is queued',
      'test:running',
      { maxDurationDeadlineMs: NOW },
      { kind: 'interrupt', deadline: 'maxAge' },
    ],
  ])('%s', (_what, text, more, expected) => {
    expect(decide(text, more)).toMatchObject(expected);
  });
});

describe('interrupted', () => {
  test.each<[what: string, steps: string, more: Partial<JobFacts>, expected: object]>([
    [
      'in pre: the step is stopped',
      'pre:running test:waiting post:waiting',
      STOP,
      { kind: 'stop', step: 0, mode: 'stop', by: 'cancelled', reason: 'why' },
    ],
    [
      'in test: the step is stopped',
      'pre:ok test:running post:waiting',
      STOP,
      { kind: 'stop', step: 1, mode: 'stop' },
    ],
    [
      '… by a timeout',
      'test:running',
      cancel('stop', 'run_timeout'),
      { kind: 'stop', by: 'timeout' },
    ],
    [
      '… by a newer version',
      'test:running',
      cancel('stop', 'superseded'),
      { kind: 'stop', by: 'superseded' },
    ],
    ['… once', 'test:stopping post:waiting', STOP, { kind: 'wait', step: 0, untilMs: NOW + 100 }],
    [
      'then no more steps of its stage',
      'test:aborted test:waiting post:waiting',
      STOP,
      notRun(1, 'interrupted'),
    ],
    ['… but post steps', 'test:aborted test:skipped post:waiting', STOP, start(2)],
    [
      'between two steps: only post steps follow',
      'pre:ok test:waiting post:waiting',
      STOP,
      notRun(1, 'interrupted'),
    ],
    ['before the first step', 'pre:waiting post:waiting', STOP, notRun(0, 'interrupted')],
    [
      'in post: the running step continues within the grace period',
      'test:ok post:running post:waiting',
      STOP,
      { kind: 'wait', step: 1, untilMs: NOW + 100 },
    ],
    ['… and the remaining post steps run', 'test:ok post:ok post:waiting', STOP, start(2)],
    [
      'skipOnSuccess does not apply to an interrupted job',
      'test:aborted post:waiting/optional',
      STOP,
      start(1),
    ],
    [
      'the grace period ends during a post step',
      'test:ok post:running post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    [
      '… the running step is stopped with its own grace period',
      'test:ok post:running post:waiting',
      OUT_OF_GRACE,
      { kind: 'stop', step: 1, mode: 'stop', by: 'timeout' },
    ],
    [
      '… once, and the job waits for it without a separate deadline',
      'test:ok post:stopping post:waiting',
      OUT_OF_GRACE,
      { kind: 'wait', step: 1 },
    ],
    [
      '… and the remaining steps are not run',
      'test:ok post:aborted post:waiting',
      OUT_OF_GRACE,
      notRun(2, 'grace'),
    ],
    [
      'the grace period ends before the post stage has started',
      'test:stopping post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    [
      '… the step that is stopping keeps its own grace period',
      'test:stopping post:waiting',
      OUT_OF_GRACE,
      { kind: 'wait', step: 0 },
    ],
    [
      'the grace period ends between two steps',
      'test:ok post:ok post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    ['… with no step left: the job ends normally', 'test:ok post:ok', GRACE_OVER, { kind: 'end' }],
    [
      'by force: the running step is killed, also in post',
      'test:ok post:running post:waiting',
      FORCE,
      { kind: 'stop', step: 1, mode: 'force' },
    ],
    [
      '… a stopping step is stopped again',
      'test:stopping post:waiting',
      FORCE,
      { kind: 'stop', step: 0, mode: 'force' },
    ],
    ['… once, however long it takes', 'test:killed post:waiting', FORCE, { kind: 'wait', step: 0 }],
    [
      '… when its grace period would be over',
      'test:killed',
      { ...FORCE, graceEndsAtMs: NOW },
      { kind: 'wait', step: 0 },
    ],
    ['… and no other step runs', 'test:aborted post:waiting', FORCE, notRun(1, 'force')],
    [
      'drained: the running step continues until its timeout',
      'test:running test:waiting',
      { ...DRAIN, timeoutAtMs: NOW + 5 },
      { kind: 'wait', untilMs: NOW + 5 },
    ],
    ['… and so does its stage', 'pre:ok pre:waiting test:waiting', DRAIN, start(1)],
    [
      '… but no other stage',
      'pre:ok test:waiting test:waiting post:waiting',
      DRAIN,
      notRun(1, 'drained'),
    ],
    [
      '… also after a skipped step',
      'pre:ok test:skipped test:waiting post:waiting',
      DRAIN,
      notRun(2, 'drained'),
    ],
    ['… but post steps', 'pre:ok test:skipped post:waiting', DRAIN, start(2)],
    ['… before the first step', 'pre:waiting test:waiting', DRAIN, notRun(0, 'drained')],
    [
      '… after a failure: the failure is the reason',
      'pre:failed pre:waiting',
      DRAIN,
      notRun(1, 'failed'),
    ],
  ])('%s', (_what, text, more, expected) => {
    const action = decide(text, more);
    expect(action).toMatchObject(expected);
    expect(untilOf(action)).toBe((expected as { untilMs?: number }).untilMs);
  });
});

describe('the verdict', () => {
  test.each<[what: string, steps: string, more: Partial<JobFacts>, expected: object]>([
    ['each succeeded', 'pre:ok test:ok post:ok', {}, { outcome: 'succeeded' }],
    ['… or was skipped', 'test:ok post:skipped/optional', {}, { outcome: 'succeeded' }],
    [
      'a test step failed',
      'test:failed post:ok',
      {},
      { outcome: 'failed', message: 'Not every step succeeded: test s0 failed.' },
    ],
    ['a step of post failed', 'test:ok post:failed', {}, { outcome: 'failed' }],
    ['… a best-effort one', 'test:ok post:failed/bestEffort', {}, { outcome: 'succeeded' }],
    [
      'an infrastructure error is not a failure',
      'test:errored post:ok',
      {},
      { outcome: 'errored', cause: 'evicted' },
    ],
    [
      'the timeout of a step',
      'test:aborted post:ok',
      {},
      { outcome: 'aborted', cause: 'run_timeout' },
    ],
    [
      'the first failure decides, all are listed',
      'test:failed post:errored',
      {},
      {
        outcome: 'failed',
        message: 'Not every step succeeded: test s0 failed, post s1 errored/evicted.',
      },
    ],
    [
      'cancelled',
      'test:aborted post:ok',
      STOP,
      { outcome: 'aborted', cause: 'cancelled', message: expect.stringContaining('why') },
    ],
    [
      '… after all steps have run',
      'test:ok post:ok',
      STOP,
      { outcome: 'aborted', cause: 'cancelled' },
    ],
    [
      'a timeout',
      'test:aborted post:ok',
      cancel('stop', 'run_timeout'),
      { outcome: 'aborted', cause: 'run_timeout' },
    ],
    [
      'superseded',
      'test:failed post:ok',
      cancel('stop', 'superseded'),
      { outcome: 'aborted', cause: 'superseded' },
    ],
    ['drained', 'pre:ok test:skipped post:ok', DRAIN, { outcome: 'aborted', cause: 'cancelled' }],
    [
      '… as by a set',
      'pre:ok test:skipped',
      cancel('drain', 'drain'),
      { outcome: 'aborted', cause: 'cancelled' },
    ],
  ])('%s', (_what, text, more, expected) => {
    expect(decide(text, more)).toMatchObject({ kind: 'end', verdict: expected });
  });
});

/** The effect of an action on its step, if it succeeds. */
function changeOf(
  action: JobAction & { readonly step: number },
  step: StepFacts,
): Partial<StepFacts> {
  if (action.kind === 'start') return { state: 'running' };
  if (action.kind === 'leave') return { state: action.state };
  if (action.kind === 'stop') return { stopRequested: action.mode };
  return { state: 'ended', outcome: step.stopRequested === undefined ? 'succeeded' : 'aborted' };
}

test('for every request at every time: post steps start in order, each step once, and the job ends', () => {
  const asked: Partial<JobFacts>[] = [{}, STOP, DRAIN, FORCE, { timeoutAtMs: NOW }, OUT_OF_GRACE];
  for (const first of asked) {
    for (const afterStep of [0, 1, 2, 3, 4, 5]) {
      const all = steps(
        'pre:waiting pre:waiting test:waiting post:waiting post:waiting/bestEffort post:waiting/optional',
      );
      let more: Partial<JobFacts> = {};
      const begun: string[] = [];
      for (let turns = 0; ; turns++) {
        expect(turns).toBeLessThan(40);
        if (begun.length >= afterStep) more = { ...first, ...more };
        const action = nextAction({
          steps: all,
          nowMs: NOW,
          maxDurationDeadlineMs: NOW + 1_000,
          outOfGrace: false,
          ...more,
        });
        if (action.kind === 'end') break;
        if (action.kind === 'interrupt') more = { ...more, ...STOP };
        if (action.kind === 'outOfGrace') more = { ...more, outOfGrace: true };
        if (!('step' in action)) continue;
        const step = all[action.step] as StepFacts;
        if (action.kind === 'start') begun.push(step.name);
        all[action.step] = { ...step, ...changeOf(action, step) };
      }
      expect(begun).toEqual([...new Set(begun)].toSorted());
      const postRuns = first.cancel?.mode !== 'force' && first.outOfGrace !== true;
      expect(begun).toEqual(expect.arrayContaining(postRuns ? ['s3', 's4'] : []));
    }
  }
});
