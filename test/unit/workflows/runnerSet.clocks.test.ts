/** A set whose workers' clocks are wrong, are set, or differ. It evaluates its schedules neither endlessly nor too late. */
import { expect, test } from '@jest/globals';
import { activeSchedule } from '../../../activities/runnerSet/schedules.ts';
import { toBounds } from '../../../core/domain/scale.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setSpec } from '../../support/setModel.ts';
import { reschedule } from '../../../workflows/runnerSet/setFacts.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BEGIN = Date.UTC(2026, 2, 1);
const RELIST = 5 * MINUTE;
/** Ten minutes in each hour. */
const SCHEDULED = { cron: '30 * * * *', duration: '10m', replicas: 0 };
const spec = {
  ...setSpec({ replicas: 0 }),
  schedules: [
    {
      cron: SCHEDULED.cron,
      timeZone: 'UTC',
      durationMs: 10 * MINUTE,
      bounds: toBounds({ replicas: 0 }),
    },
  ],
};

interface Course {
  /** Number of evaluations of the schedules. */
  readonly evaluations: number;
  /** Maximum number of actions at the same time. */
  readonly atOnce: number;
  /** Minutes since the beginning in which the wrong schedule was active. */
  readonly wrongMinutes: number[];
}

/** Eight hours of a set. @param errorMs - how far the worker's clock is ahead, by true time and number of its response */
function play(errorMs: (sinceBegin: number, answer: number) => number): Course {
  let trueTime = BEGIN;
  let answers = 0;
  const clock = (): number => trueTime + errorMs(trueTime - BEGIN, answers++);
  const first = clock();
  let now = first;
  const state = SetState.begin(
    spec,
    { name: 'linux', template: {}, replicas: 0, schedules: [SCHEDULED] },
    activeSchedule(spec.schedules, first),
    now,
  );
  let evaluations = 0;
  let atOnce = 0;
  let inARow = 0;
  const wrongMinutes = new Set<number>();
  while (trueTime < BEGIN + 8 * HOUR && inARow < 100) {
    const { evaluateSchedule, listRunners, wakeAt } = decideSet(state, now);
    if (evaluateSchedule || listRunners) {
      atOnce = Math.max(atOnce, ++inARow);
      const at = clock();
      now = Math.max(now, at);
      if (evaluateSchedule) reschedule(state.facts, activeSchedule(spec.schedules, at), at, now);
      else state.onRunnersListed([], [], now);
      if (evaluateSchedule) evaluations++;
    } else {
      const until = trueTime + Math.max(1, wakeAt - now);
      for (; trueTime < until; trueTime = Math.min(until, trueTime + MINUTE)) {
        if (state.facts.schedule.index !== activeSchedule(spec.schedules, trueTime).index)
          wrongMinutes.add(Math.floor((trueTime - BEGIN) / MINUTE));
      }
      now = Math.max(now, wakeAt);
      inARow = 0;
    }
    state.updateDemand(now);
  }
  return { evaluations, atOnce, wrongMinutes: [...wrongMinutes] };
}

/** One evaluation for each list of runners and each start or end of a schedule, and some more. */
const MAX_ASKED = (8 * HOUR) / RELIST + 2 * 8 + 8;
const during =
  (from: number, to: number, errorMs: number) =>
  (since: number): number =>
    since >= from && since < to ? errorMs : 0;

test.each<[string, (sinceBegin: number, answer: number) => number, number[]]>([
  ['right', () => 0, []],
  ['ahead by an hour in its first response', (_since, answer) => (answer === 0 ? HOUR : 0), []],
  [
    'ahead by forty minutes for three minutes: the schedule that starts then is not skipped',
    during(28 * MINUTE, 31 * MINUTE, 40 * MINUTE),
    [30, 31, 32, 33, 34],
  ],
  ['ahead by a year for a moment', during(2 * HOUR, 2 * HOUR + MINUTE, 365 * 24 * HOUR), []],
  ['set back by an hour for a moment', during(2 * HOUR, 2 * HOUR + MINUTE, -HOUR), []],
  [
    'set back during a schedule, for two minutes',
    during(2 * HOUR + 35 * MINUTE, 2 * HOUR + 37 * MINUTE, -20 * MINUTE),
    [155, 156, 157, 158, 159],
  ],
])('a clock that is %s', (_what, errorMs, mayBeWrong) => {
  const { evaluations, atOnce, wrongMinutes } = play(errorMs);
  expect({
    evaluations: evaluations <= MAX_ASKED || evaluations,
    atOnce: atOnce <= 3 || atOnce,
  }).toEqual({
    evaluations: true,
    atOnce: true,
  });
  expect(wrongMinutes.filter((minute) => !mayBeWrong.includes(minute))).toEqual([]);
});

test.each<[string, (sinceBegin: number, answer: number) => number]>([
  ['two workers respond in turn, one an hour ahead', (_since, answer) => (answer % 2) * HOUR],
  ['two workers, one 25 minutes behind', (_since, answer) => (answer % 2) * -25 * MINUTE],
  ['the clock loses half a second an hour', (since) => -since / 7_200],
  [
    'the clock stops for a minute, one millisecond before a schedule starts',
    (since) => Math.max(-MINUTE, Math.min(0, 30 * MINUTE - 1 - since)),
  ],
  [
    'the clock steps back by a minute every seven minutes',
    (since) => -Math.floor(since / (7 * MINUTE)) * MINUTE,
  ],
])('schedules are not evaluated endlessly if %s', (_what, errorMs) => {
  const { evaluations, atOnce } = play(errorMs);
  expect({
    evaluations: evaluations <= 2 * MAX_ASKED || evaluations,
    atOnce: atOnce <= 3 || atOnce,
  }).toEqual({
    evaluations: true,
    atOnce: true,
  });
});
