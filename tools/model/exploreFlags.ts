/** Options of `npm run explore`, as main.ts parses them. */
import type { Limits } from './explore.ts';
import type { Setup } from './state.ts';
import type { Tables } from './decisionTables.ts';

/** Values of the options. */
export interface ExploreFlags {
  readonly depth?: number;
  readonly states: number;
  readonly setup?: readonly Setup[];
  readonly stories?: true;
  readonly json?: true;
  readonly pairs?: true;
  readonly seed?: number;
  readonly from?: number;
  readonly seconds?: number;
  readonly mutations?: true;
  readonly table?: readonly (keyof Tables)[];
}

/** Returns the limits of an exploration. */
export function limitsOf({ states, setup, depth }: ExploreFlags): Limits {
  return {
    states,
    ...(setup === undefined ? {} : { setups: setup }),
    ...(depth === undefined ? {} : { depth }),
  };
}
