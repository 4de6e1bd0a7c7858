/** What a job does next, row by row. */
import { describe, expect, test } from '@jest/globals';
import type { Cancellation } from '../../../core/domain/cancellation.ts';
import {
  nextAction,
  type JobFacts,
  type JobAction,
  type StepFacts,
} from '../../../workflows/job/plan.ts';

const NOW = 1_000_000;
type Word =
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
    const [word, flag] = rest.split('/') as [Word, string?];
    const base = {
      stage: stage as StepFacts['stage'],
      name: `s${index}`,
      bestEffort: flag === 'bestEffort',
      skipOnSuccess: flag === 'optional',
      isRunning: false,
    };
    switch (word) {
      case 'waiting':
      case 'running':
      case 'skipped':
      case 'not_run':
        return { ...base, state: word };
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

describe('left alone', () => {
  test.each<[what: string, steps: string, expected: object]>([
    ['the first step first', 'pre:waiting test:waiting', start(0)],
    ['no pre: test', 'test:waiting post:waiting', start(0)],
    ['one at a time', 'test:running test:waiting', { kind: 'wait', step: 0, untilMs: NOW + 1_000 }],
    ['the next of the stage', 'test:ok test:waiting', start(1)],
    ['the next stage', 'pre:ok test:waiting', start(1)],
    [
      'pre failed: no more of it',
      'pre:failed pre:waiting test:waiting post:waiting',
      notRun(1, 'pre s0 failed'),
    ],
    [
      '… and no test',
      'pre:failed pre:skipped test:waiting post:waiting',
      notRun(2, 'pre s0 failed'),
    ],
    ['… but post', 'pre:failed test:skipped post:waiting', start(2)],
    [
      'infrastructure ends a stage as a failure does',
      'test:errored test:waiting post:waiting',
      notRun(1, 'test s0 errored'),
    ],
    [
      '… and a timeout of its own',
      'test:aborted test:waiting post:waiting',
      notRun(1, 'test s0 aborted'),
    ],
    ['post goes on after one of its own failed', 'test:ok post:failed post:waiting', start(2)],
    [
      'skipOnSuccess, all earlier steps succeeded',
      'test:ok post:waiting/optional',
      { kind: 'leave', step: 1, state: 'skipped' },
    ],
    [
      '… one that was skipped counts as such',
      'test:ok post:skipped post:waiting/optional',
      { kind: 'leave', step: 2, state: 'skipped' },
    ],
    ['… a test failed', 'test:failed post:waiting/optional', start(1)],
    ['… a step of post failed', 'test:ok post:failed post:waiting/optional', start(2)],
    [
      '… of a best-effort one, too',
      'test:ok post:failed/bestEffort post:waiting/optional',
      start(2),
    ],
  ])('%s', (_what, text, expected) => {
    expect(decide(text)).toMatchObject(expected);
  });
});

describe('a step is over, and its pod goes', () => {
  const killed = { ...steps('test:going')[0], stopRequested: 'force' } as StepFacts;
  test.each<[what: string, steps: string, more: Partial<JobFacts>, expected: object]>([
    ['the next begins', 'pre:going test:waiting', {}, start(1)],
    [
      'nothing is next: it is waited for, whatever the clock says',
      'pre:ok test:going',
      { timeoutAtMs: NOW, maxDurationDeadlineMs: NOW },
      { kind: 'wait', step: 1 },
    ],
    ['… also out of grace', 'test:ok post:going', OUT_OF_GRACE, { kind: 'wait', step: 1 }],
    ['… by force it is killed', 'test:going', FORCE, { kind: 'stop', step: 0, mode: 'force' }],
    ['… once', '', { ...FORCE, steps: [killed] }, { kind: 'wait', step: 0 }],
    ['… a stop leaves it alone', 'test:going', STOP, { kind: 'wait', step: 0 }],
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
      'its clock runs',
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
    ['… when all is over: too late', 'test:ok', { timeoutAtMs: NOW }, { kind: 'end' }],
    [
      '… when it is interrupted already',
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
      'in pre: the step is told',
      'pre:running test:waiting post:waiting',
      STOP,
      { kind: 'stop', step: 0, mode: 'stop', by: 'cancelled', reason: 'why' },
    ],
    [
      'in test: the step is told',
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
      'then no more of its stage',
      'test:aborted test:waiting post:waiting',
      STOP,
      notRun(1, 'interrupted'),
    ],
    ['… but post', 'test:aborted test:skipped post:waiting', STOP, start(2)],
    [
      'between two steps: no other but post',
      'pre:ok test:waiting post:waiting',
      STOP,
      notRun(1, 'interrupted'),
    ],
    ['before anything was started', 'pre:waiting post:waiting', STOP, notRun(0, 'interrupted')],
    [
      'in post: the running step is let be, within the grace',
      'test:ok post:running post:waiting',
      STOP,
      { kind: 'wait', step: 1, untilMs: NOW + 100 },
    ],
    ['… and the rest run', 'test:ok post:ok post:waiting', STOP, start(2)],
    [
      'post of an interrupted job is not optional',
      'test:aborted post:waiting/optional',
      STOP,
      start(1),
    ],
    [
      'the grace ends in post',
      'test:ok post:running post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    [
      '… the running step is stopped with its own grace',
      'test:ok post:running post:waiting',
      OUT_OF_GRACE,
      { kind: 'stop', step: 1, mode: 'stop', by: 'timeout' },
    ],
    [
      '… once, and waited for without an end of the job’s own',
      'test:ok post:stopping post:waiting',
      OUT_OF_GRACE,
      { kind: 'wait', step: 1 },
    ],
    [
      '… and the rest is not run',
      'test:ok post:aborted post:waiting',
      OUT_OF_GRACE,
      notRun(2, 'grace'),
    ],
    [
      'the grace ends before post has begun',
      'test:stopping post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    [
      '… the step that is on its way out keeps its own grace',
      'test:stopping post:waiting',
      OUT_OF_GRACE,
      { kind: 'wait', step: 0 },
    ],
    [
      'the grace ends between two steps',
      'test:ok post:ok post:waiting',
      GRACE_OVER,
      { kind: 'outOfGrace' },
    ],
    ['… with nothing left: it was enough', 'test:ok post:ok', GRACE_OVER, { kind: 'end' }],
    [
      'by force: the running step, in post, too',
      'test:ok post:running post:waiting',
      FORCE,
      { kind: 'stop', step: 1, mode: 'force' },
    ],
    [
      '… one that was told to stop is told again',
      'test:stopping post:waiting',
      FORCE,
      { kind: 'stop', step: 0, mode: 'force' },
    ],
    [
      '… once, and however long it takes',
      'test:killed post:waiting',
      FORCE,
      { kind: 'wait', step: 0 },
    ],
    [
      '… when its grace would be over',
      'test:killed',
      { ...FORCE, graceEndsAtMs: NOW },
      { kind: 'wait', step: 0 },
    ],
    ['… and nothing else is run', 'test:aborted post:waiting', FORCE, notRun(1, 'force')],
    [
      'drained: the running step goes on, as long as it may',
      'test:running test:waiting',
      { ...DRAIN, timeoutAtMs: NOW + 5 },
      { kind: 'wait', untilMs: NOW + 5 },
    ],
    ['… and its stage', 'pre:ok pre:waiting test:waiting', DRAIN, start(1)],
    [
      '… but no other',
      'pre:ok test:waiting test:waiting post:waiting',
      DRAIN,
      notRun(1, 'drained'),
    ],
    [
      '… not by and by either',
      'pre:ok test:skipped test:waiting post:waiting',
      DRAIN,
      notRun(2, 'drained'),
    ],
    ['… but post', 'pre:ok test:skipped post:waiting', DRAIN, start(2)],
    ['… before anything was started', 'pre:waiting test:waiting', DRAIN, notRun(0, 'drained')],
    ['… and had a failure: that is why', 'pre:failed pre:waiting', DRAIN, notRun(1, 'failed')],
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
      'a test failed',
      'test:failed post:ok',
      {},
      { outcome: 'failed', message: 'Not every step succeeded: test s0 failed.' },
    ],
    ['a step of post failed', 'test:ok post:failed', {}, { outcome: 'failed' }],
    ['… a best-effort one', 'test:ok post:failed/bestEffort', {}, { outcome: 'succeeded' }],
    [
      'infrastructure is no failure',
      'test:errored post:ok',
      {},
      { outcome: 'errored', cause: 'evicted' },
    ],
    [
      'a step’s own timeout',
      'test:aborted post:ok',
      {},
      { outcome: 'aborted', cause: 'run_timeout' },
    ],
    [
      'the first decides, all are told',
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
      '… with nothing lost by it',
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
      '… as a set does',
      'pre:ok test:skipped',
      cancel('drain', 'drain'),
      { outcome: 'aborted', cause: 'cancelled' },
    ],
  ])('%s', (_what, text, more, expected) => {
    expect(decide(text, more)).toMatchObject({ kind: 'end', verdict: expected });
  });
});

/** What an action changes of its step, if it runs as asked. */
function changeOf(
  action: JobAction & { readonly step: number },
  step: StepFacts,
): Partial<StepFacts> {
  if (action.kind === 'start') return { state: 'running' };
  if (action.kind === 'leave') return { state: action.state };
  if (action.kind === 'stop') return { stopRequested: action.mode };
  return { state: 'ended', outcome: step.stopRequested === undefined ? 'succeeded' : 'aborted' };
}

test('whatever is asked and whenever: post is begun in order, each step once, and the job ends', () => {
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
