/** The unit tests of the decision tables, which catch mutants that the model does not notice. */
import { MutantTests } from '../shared/mutantTests.ts';
import type { Tables } from './decisionTables.ts';
import { memoize } from './interning.ts';
import type { Mutant } from './mutants.ts';

/** The test files of each table. */
const TESTS: Readonly<Record<keyof Tables, readonly string[]>> = {
  unregisterTable: ['test/unit/workflows/runner.unregisterTable.test.ts'],
  unregisterFacts: ['test/unit/workflows/runner.unregisterTable.test.ts'],
  onlineDecision: ['test/unit/workflows/runner.onlineDecision.test.ts'],
  verdicts: [
    'test/unit/workflows/runner.verdict.test.ts',
    'test/unit/workflows/runner.verdict.messages.test.ts',
    'test/unit/workflows/runner.jobEvents.test.ts',
    'test/unit/workflows/runner.jobLoss.test.ts',
    'test/unit/workflows/runner.lostJob.test.ts',
    'test/unit/viewOfPod.exit.test.ts',
  ],
  cancellation: ['test/unit/core/cancellation.test.ts'],
};

/** Runs the tests of tables on their mutants. */
export class TableTests {
  readonly #tests = new MutantTests();
  /** Tables whose tests pass without a mutant. */
  readonly #passing = new Map<keyof Tables, Promise<void>>();

  /**
   * Returns the name of a test that fails with the mutant, or `undefined`.
   * @throws Error if the tests fail without the mutant too
   */
  async failingTest({
    table,
    file,
    text,
  }: Pick<Mutant, 'table' | 'file' | 'text'>): Promise<string | undefined> {
    await memoize(this.#passing, table, async () => {
      const failed = await this.#tests.failingTestOfOriginal(TESTS[table]);
      if (failed !== undefined)
        throw new Error(`the tests of ${table} fail without a mutant: ${failed}`);
    });
    return await this.#tests.failingTest({ file, text }, TESTS[table]);
  }

  /** Deletes the copy of the project. */
  close(): void {
    this.#tests.close();
  }
}
