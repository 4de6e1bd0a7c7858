import { expect, test } from '@jest/globals';
import { RunLength } from '../../../workflows/runnerSet/runLength.ts';

type Step = (length: RunLength) => void;

/** @returns how many steps fit into a run */
function times(step: Step): number {
  const length = new RunLength();
  for (let count = 0; ; count++) {
    if (length.isLong) return count;
    step(length);
  }
}

test.each<[string, Step, number]>([
  ['signals', (length) => length.countSignal(1), 251],
  ['commands', (length) => length.countCommand(), 112],
  ['activities and timers', (length) => length.countIteration(), 112],
  ['events of jobs, in all signals together', (length) => length.countSignal(5_000), 3],
])('%s: number in a run', (_what, step, expected) => {
  expect(times(step)).toBe(expected);
});
