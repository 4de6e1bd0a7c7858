/** Fuzzer targets with bugs. */
import fc from 'fast-check';
import { target, type FuzzTarget } from '../../tools/fuzz/target.ts';

const numbers = fc.array(fc.nat({ max: 1_000 }), { maxLength: 20 });
const isBad = (input: number[]): boolean => input.some((each) => each >= 500);

export const TARGETS: readonly FuzzTarget[] = [
  target('endless', 'never gives the thread back', () => ({
    inputs: numbers,
    run: (input) => {
      while (isBad(input));
    },
  })),
  target('ending', 'ends its thread', () => ({
    inputs: numbers,
    run: (input) => {
      if (isBad(input)) process.exit(7);
    },
  })),
  target('closed', 'does not come up', () => {
    throw new Error('no port is free');
  }),
];
