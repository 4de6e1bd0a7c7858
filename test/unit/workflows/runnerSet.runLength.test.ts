import { expect, test } from '@jest/globals';
import {
  FIRST,
  RunLength,
  COUNTED,
  type Reckoning,
} from '../../../workflows/runnerSet/runLength.ts';

type Step = (length: RunLength) => void;
const news: Step = (length) => length.news(1);
const command: Step = (length) => length.command();
const turn: Step = (length) => length.turn(false);
const hearsay: Step = (length) => length.turn(true);

/** @returns how many times the steps are done before the run is long */
function times(reckoning: Reckoning, ...steps: Step[]): number {
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
  expect({ first: times(FIRST, ...steps), counted: times(COUNTED, ...steps) }).toEqual({
    first,
    counted,
  });
});

test.each([FIRST, COUNTED])(
  'jobs’ events end a run by their number, whichever signal they came with',
  (reckoning) => {
    expect(times(reckoning, (length) => length.news(5_000))).toBe(3);
  },
);
