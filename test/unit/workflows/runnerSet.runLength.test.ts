import { expect, test } from '@jest/globals';
import { RunLength } from '../../../workflows/runnerSet/runLength.ts';

type Step = (length: RunLength) => void;

/** @returns how many times the step is done before the run is long */
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
  ['events of jobs, whichever signal they came with', (length) => length.countSignal(5_000), 3],
])('%s: so often in a run', (_what, step, expected) => {
  expect(times(step)).toBe(expected);
});
