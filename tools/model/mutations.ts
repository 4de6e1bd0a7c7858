/** Is every row of the tables needed? Each is taken away, and turned round, in turn: the exploration, or a test of the table's own, has to find something wrong then. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { DEPTHS, explore, keyOf, SETUPS, type Limits } from './explore.ts';
import type { Question, Tables } from './mind.ts';
import { mutantsOf, type Mutant } from './mutants.ts';
import { RowTests } from './rowTests.ts';
import type { Setup } from './state.ts';

export const MUTATED: readonly (keyof Tables)[] = [
  'unregisterTable',
  'unregisterFacts',
  'onlineDecision',
  'verdicts',
  'cancellation',
];

/** What became of one mutant. */
export interface Mutation extends Omit<Mutant, 'load' | 'text' | 'file'> {
  /**
   * `caught`: by the exploration. `same`: it decides alike in every moment that the model comes to, `missed`: otherwise, and nothing is found
   * wrong with that; a test of the table's own has to fail then.
   */
  readonly result: 'caught' | 'same' | 'missed';
  /** What was found wrong, or the test that fails. */
  readonly caughtBy?: string;
}

/** What one kind of runner comes to with the tables as they are. */
interface Known {
  readonly setup: Setup;
  readonly limits: Limits;
  readonly states: number;
  readonly questions: readonly Question[];
  readonly wrongs: ReadonlySet<string>;
}

/** Most mutants are caught soon: the others are followed further. */
const SOON = { depth: 1, states: 20_000 };

function exploreKind(setup: Setup, limits: Limits): Known {
  const { mind, wrongs, states } = explore({ ...limits, setups: [setup] });
  return { setup, limits, states, questions: mind.questions, wrongs: new Set(wrongs.map(keyOf)) };
}

/** @param limits - `states` of each kind; the small kinds come first, because most are caught there */
export async function* mutate(
  limits: Limits,
  tables: readonly (keyof Tables)[] = MUTATED,
): AsyncGenerator<Mutation> {
  const setups = SETUPS.filter((setup) => limits.setups?.includes(setup) ?? true);
  const soon = setups.map((setup) => exploreKind(setup, SOON));
  const later = setups
    .map((setup) => exploreKind(setup, { ...limits, depth: limits.depth ?? DEPTHS[setup] }))
    .toSorted((a, b) => a.states - b.states);
  const rowTests = new RowTests();
  try {
    for (const table of tables) {
      for (const { load, text, file, ...mutant } of mutantsOf(table)) {
        const mutated = await load();
        const touched = later.filter(({ questions }) =>
          questions.some(
            (question) => question.table === table && !answersAlike(question, mutated),
          ),
        );
        let caughtBy: string | undefined;
        for (const known of [
          ...soon.filter(({ setup }) => touched.some((one) => one.setup === setup)),
          ...touched,
        ])
          caughtBy ??= firstWrong(known, mutated);
        const uncaught = touched.length === 0 ? 'same' : 'missed';
        const result = caughtBy === undefined ? uncaught : 'caught';
        caughtBy ??= await rowTests.failing({ table, file, text });
        yield { ...mutant, result, ...omitUndefined({ caughtBy }) };
      }
    }
  } finally {
    rowTests.close();
  }
}

function answersAlike({ ask, answer }: Question, mutated: Tables): boolean {
  try {
    return JSON.stringify(ask(mutated)) === JSON.stringify(answer);
  } catch {
    return false;
  }
}

/** A table that fails is as good as caught. */
function firstWrong({ setup, limits, wrongs: known }: Known, mutated: Tables): string | undefined {
  try {
    return explore({ ...limits, setups: [setup], besides: known }, mutated)
      .wrongs.map(keyOf)
      .find((key) => !known.has(key));
  } catch (error) {
    return `it throws: ${String(error).slice(0, 100)}`;
  }
}
