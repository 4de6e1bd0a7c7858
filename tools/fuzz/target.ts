import type { Arbitrary } from 'fast-check';

/** One kind of input from outside, and what reads it. */
export interface FuzzTarget {
  readonly name: string;
  /** For `--help`. */
  readonly summary: string;
  /** Brings up what the cases need. */
  readonly open: () => Promise<OpenTarget<unknown>> | OpenTarget<unknown>;
}

export interface OpenTarget<Input> {
  readonly inputs: Arbitrary<Input>;
  /** One case, apart from all others. @throws whatever must not happen: an answer that was promised to be an error is none */
  readonly run: (input: Input) => Promise<void> | void;
  readonly close?: () => Promise<void> | void;
}

/** For a list of targets of different inputs: each hands its own inputs to its own cases only. */
export function target<Input>(
  name: string,
  summary: string,
  open: () => Promise<OpenTarget<Input>> | OpenTarget<Input>,
): FuzzTarget {
  return { name, summary, open: open as FuzzTarget['open'] };
}
