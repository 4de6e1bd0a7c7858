/** `npm run explore -- --mutations`: whether a changed condition of a decision table is noticed. */
import { limitsOf, type ExploreFlags } from './exploreFlags.ts';
import { MUTATED, testMutants, type MutantResult } from './mutationTesting.ts';
import { row, write } from './table.ts';
import type { Tables } from './decisionTables.ts';

interface Figures {
  readonly mutants: number;
  readonly caught: number;
  readonly same: number;
  readonly missed: number;
  readonly caughtByTests: number;
  readonly notCaught: number;
}

/** Tests all mutants, prints each with what caught it, and sets the exit status. */
export async function reportMutations(flags: ExploreFlags): Promise<void> {
  const results: MutantResult[] = [];
  const tables = MUTATED.filter((table) => flags.table?.includes(table) ?? true);
  for await (const result of testMutants(limitsOf(flags), tables)) {
    results.push(result);
    if (!flags.json) writeMutant(result);
  }
  if (flags.json) writeJson(results);
  else writeSummary(results);
  process.exitCode = figuresOf(results).notCaught === 0 ? 0 : 1;
}

function writeMutant({ file, line, condition, change, result, caughtBy }: MutantResult): void {
  const source = condition.slice(0, 70).padEnd(70);
  write(
    `${result.padEnd(6)}  ${file}:${line}  ${change.padEnd(7)}  ${source}  ${caughtBy ?? 'NOT CAUGHT'}`,
  );
}

function figuresOf(all: readonly MutantResult[], table?: keyof Tables): Figures {
  const results = all.filter((one) => table === undefined || one.table === table);
  const count = (which: (one: MutantResult) => boolean): number => results.filter(which).length;
  return {
    mutants: results.length,
    caught: count(({ result }) => result === 'caught'),
    same: count(({ result }) => result === 'same'),
    missed: count(({ result }) => result === 'missed'),
    caughtByTests: count(({ result, caughtBy }) => result !== 'caught' && caughtBy !== undefined),
    notCaught: count(({ caughtBy }) => caughtBy === undefined),
  };
}

function writeSummary(results: readonly MutantResult[]): void {
  write('');
  write(row('table', 'mutants', 'caught', 'same', 'missed', 'by tests', 'not caught'));
  for (const table of MUTATED) write(row(table, ...Object.values(figuresOf(results, table))));
  write(row('all', ...Object.values(figuresOf(results))));
}

/** The names of the JSON fields are an interface for other programs. */
function writeJson(results: readonly MutantResult[]): void {
  const document = {
    all: figuresOf(results),
    tables: Object.fromEntries(MUTATED.map((table) => [table, figuresOf(results, table)])),
    mutants: results,
  };
  write(JSON.stringify(document, undefined, 1));
}
