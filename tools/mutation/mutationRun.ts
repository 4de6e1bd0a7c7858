/** A mutation run: which mutants of the product does no unit test notice? */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MutantTests, TIMED_OUT } from '../shared/mutantTests.ts';
import { shuffled } from '../shared/random.ts';
import { mutantsOf, type Mutant } from './mutants.ts';
import { ImportGraph } from './relatedTests.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Source files whose mutants are tested. */
export const MUTATED = ['workflows/**/*.ts', 'activities/**/*.ts', 'supervisor/**/*.ts'];

/** Maximum number of test files for one mutant, the nearest ones. */
const MAX_TEST_FILES = 10;

/** Result of one mutant, in the terms of Stryker (https://stryker-mutator.io). */
export interface MutantResult extends Omit<Mutant, 'text'> {
  /** `no coverage`: no unit test imports the file. */
  readonly result: 'killed' | 'timeout' | 'survived' | 'no coverage';
  /** Name of the test that fails. */
  readonly killedBy?: string;
}

export interface MutationRunOptions {
  /** Patterns of source files, relative to the project. @default {@link MUTATED} */
  readonly files?: readonly string[];
  /** Only files that were changed since this Git revision. */
  readonly changedSince?: string;
  /** Maximum number of mutants, chosen by `seed`. @default all */
  readonly sample?: number;
  readonly seed: number;
  /** Number of mutants tested at the same time. */
  readonly concurrency: number;
}

/** Returns the mutants of a run, in the order in which they are tested. */
export function chooseMutants(options: MutationRunOptions): Mutant[] {
  const { files = MUTATED, changedSince, sample, seed } = options;
  const changed = changedSince === undefined ? undefined : changedFiles(changedSince);
  const sources = globSync([...files], { cwd: ROOT })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => changed?.has(file) ?? true)
    .toSorted();
  const all = sources.flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')));
  return sample === undefined ? all : shuffled(all, seed).slice(0, sample);
}

/** @throws Error if Git does not know the revision */
function changedFiles(revision: string): Set<string> {
  const names = execFileSync('git', ['diff', '--name-only', '--relative', revision, '--'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return new Set(names.split('\n'));
}

/** Tests the mutants, several at a time, and returns each result as soon as it is known. */
export async function testMutants(
  mutants: readonly Mutant[],
  concurrency: number,
  onResult: (result: MutantResult) => void,
): Promise<void> {
  const graph = new ImportGraph(ROOT);
  const remaining = mutants.values();
  const work = async (): Promise<void> => {
    const tests = new MutantTests();
    try {
      // The iterator is shared, so each mutant is tested once.
      for (const mutant of remaining) onResult(await testMutant(mutant, graph, tests));
    } finally {
      tests.close();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

async function testMutant(
  { text, ...mutant }: Mutant,
  graph: ImportGraph,
  tests: MutantTests,
): Promise<MutantResult> {
  const files = graph.testsOf(mutant.file).slice(0, MAX_TEST_FILES);
  if (files.length === 0) return { ...mutant, result: 'no coverage' };
  const failing = await tests.failingTest({ file: mutant.file, text }, files);
  if (failing === undefined) return { ...mutant, result: 'survived' };
  if (failing === TIMED_OUT) return { ...mutant, result: 'timeout' };
  return { ...mutant, result: 'killed', killedBy: failing };
}
