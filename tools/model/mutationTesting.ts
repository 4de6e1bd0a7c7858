/**
 * Mutation testing of the decision tables: is every condition needed? The exploration, or a unit
 * test of the table, must find a violation after the condition was changed.
 */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Tables } from './decisionTables.ts';
import { explore, MAX_FAULTS, SETUPS, type Limits } from './explore.ts';
import { mutantsOf, type Mutant } from './mutants.ts';
import type { Setup } from './state.ts';
import { TableTests } from './tableTests.ts';
import { violationKey } from './trace.ts';
import type { Evaluation } from './workflowModel.ts';

/** The tables, in the order in which they are tested. */
export const MUTATED: readonly (keyof Tables)[] = [
  'unregisterTable',
  'unregisterFacts',
  'onlineDecision',
  'verdicts',
  'cancellation',
];

/** Result of one mutant. */
export interface MutantResult extends Omit<Mutant, 'load' | 'text'> {
  /**
   * - `caught`: the exploration finds a violation.
   * - `same`: it decides as the original does in every state of the model.
   * - `missed`: it decides differently, but the exploration finds no violation.
   *
   * A unit test of the table must fail for the last two.
   */
  readonly result: 'caught' | 'same' | 'missed';
  /** The violation, or the name of the test that fails. */
  readonly caughtBy?: string;
}

/** Exploration of one kind of runner with the original tables. */
interface Baseline {
  readonly setup: Setup;
  readonly limits: Limits;
  readonly states: number;
  readonly evaluations: readonly Evaluation[];
  /** Keys of the violations. */
  readonly violations: ReadonlySet<string>;
}

/** Limits of a first, short exploration, which catches most mutants. */
const SHORT = { depth: 1, states: 20_000 };

function exploreBaseline(setup: Setup, limits: Limits): Baseline {
  const { workflow, violations, states } = explore({ ...limits, setups: [setup] });
  return {
    setup,
    limits,
    states,
    evaluations: workflow.evaluations,
    violations: new Set(violations.map(violationKey)),
  };
}

/**
 * Tests all mutants. The kinds of runners with the fewest states come first.
 * @param limits - `states` is the limit of each kind
 */
export async function* testMutants(
  limits: Limits,
  tables: readonly (keyof Tables)[] = MUTATED,
): AsyncGenerator<MutantResult> {
  const setups = SETUPS.filter((setup) => limits.setups?.includes(setup) ?? true);
  const short = setups.map((setup) => exploreBaseline(setup, SHORT));
  const full = setups
    .map((setup) => exploreBaseline(setup, { ...limits, depth: limits.depth ?? MAX_FAULTS[setup] }))
    .toSorted((a, b) => a.states - b.states);
  const tests = new TableTests();
  try {
    for (const mutant of tables.flatMap(mutantsOf)) {
      const { load, text: _text, ...rest } = mutant;
      const mutated = await load();
      const affected = full.filter((baseline) => isAffected(baseline, mutant, mutated));
      const violation = firstViolation(
        [...short.filter(({ setup }) => affected.some((one) => one.setup === setup)), ...affected],
        mutated,
      );
      const uncaught = affected.length === 0 ? 'same' : 'missed';
      const caughtBy = violation ?? (await tests.failingTest(mutant));
      yield {
        ...rest,
        result: violation === undefined ? uncaught : 'caught',
        ...omitUndefined({ caughtBy }),
      };
    }
  } finally {
    tests.close();
  }
}

/** Whether the mutant decides differently in a state of this kind of runner. */
const isAffected = ({ evaluations }: Baseline, { table }: Mutant, mutated: Tables): boolean =>
  evaluations.some(
    (evaluation) => evaluation.table === table && !isSameResult(evaluation, mutated),
  );

function isSameResult({ evaluate, result }: Evaluation, mutated: Tables): boolean {
  try {
    return JSON.stringify(evaluate(mutated)) === JSON.stringify(result);
  } catch {
    return false;
  }
}

function firstViolation(baselines: readonly Baseline[], mutated: Tables): string | undefined {
  for (const baseline of baselines) {
    const violation = newViolation(baseline, mutated);
    if (violation !== undefined) return violation;
  }
  return undefined;
}

/** Returns a violation that the original tables do not have. An exception counts as one. */
function newViolation(
  { setup, limits, violations: known }: Baseline,
  mutated: Tables,
): string | undefined {
  try {
    return explore({ ...limits, setups: [setup], stopUnlessIn: known }, mutated)
      .violations.map(violationKey)
      .find((key) => !known.has(key));
  } catch (error) {
    return `it throws: ${String(error).slice(0, 100)}`;
  }
}
