import { expect, test } from '@jest/globals';
import {
  EVENT_COSTS_V1,
  RunLength,
  EVENT_COSTS_V2,
  type EventCosts,
} from '../../../workflows/runnerSet/runLength.ts';

type Step = (length: RunLength) => void;
const news: Step = (length) => length.news(1);
const command: Step = (length) => length.countCommand();
const turn: Step = (length) => length.countIteration(false);
const hearsay: Step = (length) => length.countIteration(true);

/** @returns how many times the steps are done before the run is long */
function times(reckoning: EventCosts, ...steps: Step[]): number {
  const length = new RunLength(reckoning);
  for (let count = 0; ; count++) {
    if (length.isLong) return count;
    for (const step of steps) step(length);
  }
}

test.each<[string, Step[], { first: number; counted: number }]>([
  ['news during an activity', [news], { first: 1_001, counted: 251 }],
  ['news alone', [news, hearsay], { first: 101, counted: 251 }],
  ['commands', [command, hearsay], { first: 56, counted: 112 }],
  ['activities and timers', [turn], { first: 112, counted: 112 }],
])('%s: so often in a run', (_what, steps, { first, counted }) => {
  expect({
    first: times(EVENT_COSTS_V1, ...steps),
    counted: times(EVENT_COSTS_V2, ...steps),
  }).toEqual({
    first,
    counted,
  });
});

test.each([EVENT_COSTS_V1, EVENT_COSTS_V2])(
  'jobs’ events end a run by their number, whichever signal they came with',
  (reckoning) => {
    expect(times(reckoning, (length) => length.news(5_000))).toBe(3);
  },
);
