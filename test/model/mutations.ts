/** Is every row of the tables needed? Each is taken away, and turned round, in turn: the exploration has to find something wrong with the life then. */
import { explore, keyOf, SETUPS, type Exploration, type Limits } from './explore.ts';
import type { Tables } from './mind.ts';
import { mutantsOf, type Mutant } from './mutants.ts';

export const MUTATED: readonly (keyof Tables)[] = ['unregisterTable', 'unregisterFacts', 'onlineDecision', 'verdicts', 'cancellation'];

/** What became of one mutant. */
export interface Mutation extends Omit<Mutant, 'load'> {
  /** Absent: nothing was found. */
  readonly caughtBy?: string;
}

/** The small ones first: most are caught there. */
const IN_TURN = [...SETUPS].toSorted((a, b) => order(a) - order(b));
function order(setup: string): number {
  return setup.includes('command') ? 0 : setup.startsWith('ephemeral, ') ? 1 : setup.startsWith('static, ') ? 2 : setup === 'ephemeral' ? 3 : 4;
}

export async function* mutate(limits: Limits, tables: readonly (keyof Tables)[] = MUTATED): AsyncGenerator<Mutation> {
  const setups = IN_TURN.filter((setup) => limits.setups === undefined || limits.setups.includes(setup));
  const known = new Set(setups.flatMap((setup) => explore({ ...limits, setups: [setup] }).wrongs.map(keyOf)));
  for (const table of tables) {
    for (const { load, ...mutant } of mutantsOf(table)) {
      const mutated = await load();
      let caughtBy: string | undefined;
      for (const setup of setups) caughtBy ??= firstWrong(() => explore({ ...limits, setups: [setup], besides: known }, mutated), known);
      yield { ...mutant, ...(caughtBy === undefined ? {} : { caughtBy }) };
    }
  }
}

/** A table that fails is as good as caught. */
function firstWrong(run: () => Exploration, known: ReadonlySet<string>): string | undefined {
  try {
    return run().wrongs.map(keyOf).find((key) => !known.has(key));
  } catch (error) {
    return `it throws: ${String(error).slice(0, 100)}`;
  }
}
