import type { Arbitrary } from 'fast-check';

/** One kind of external input, and its parser. */
export interface FuzzTarget {
  readonly name: string;
  /** For `--help`. */
  readonly summary: string;
  /** Starts what the cases need. */
  readonly open: () => Promise<OpenTarget<unknown>> | OpenTarget<unknown>;
}

export interface OpenTarget<Input> {
  readonly inputs: Arbitrary<Input>;
  /**
   * Runs one case, independent of others.
   * @throws if a rule is broken, for example if an expected error is missing
   */
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
