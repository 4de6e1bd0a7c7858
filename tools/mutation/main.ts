/** Runs the unit tests on mutants of the product: `npm run mutation`. */
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Option } from 'commander';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { createCommand, runCommand, startProgress, wholeNumber } from '../shared/commandLine.ts';
import { chooseMutants, MUTATED, testMutants, type MutantResult } from './mutationRun.ts';
import { folderScores, mutationScore } from './mutationScore.ts';

interface Flags {
  readonly changed?: string;
  readonly sample?: number;
  readonly seed?: number;
  readonly concurrency: number;
  readonly minimum: number;
  readonly json?: true;
}

async function run(files: readonly string[], flags: Flags): Promise<void> {
  const { changed: changedSince, sample, seed = randomInt(1, 2 ** 31), concurrency } = flags;
  const options = { seed, concurrency, ...omitUndefined({ changedSince, sample }) };
  const mutants = chooseMutants(files.length === 0 ? options : { ...options, files });
  const progress = startProgress();
  progress(`${mutants.length} mutants, seed ${seed}`);
  const results: MutantResult[] = [];
  await testMutants(mutants, concurrency, (result) => {
    results.push(result);
    progress(`${results.length}/${mutants.length} ${line(result)}`);
  });
  const score = mutationScore(results);
  if (flags.json) process.stdout.write(`${JSON.stringify({ seed, score, mutants: results })}\n`);
  else process.stdout.write(summary(results, score));
  if (score !== undefined && score < flags.minimum) process.exitCode = 3;
}

function line({ result, file, line: at, kind, original, replacement }: MutantResult): string {
  const short = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 70);
  return `${result.padEnd(11)} ${file}:${at}  ${kind}: ${short(original)} -> ${short(replacement)}`;
}

function summary(results: readonly MutantResult[], score: number | undefined): string {
  const alive = results.filter(({ result }) => result === 'survived' || result === 'no coverage');
  const folders = folderScores(results).map(
    ({ folder, killed, mutants }) =>
      `${folder.padEnd(36)} ${String(killed).padStart(5)} of ${String(mutants).padStart(5)} killed`,
  );
  return `${[
    ...(alive.length === 0 ? [] : ['Not noticed by a unit test:', ...alive.map(line), '']),
    ...folders,
    score === undefined ? 'There is nothing to mutate.' : `mutation score: ${score.toFixed(1)} %`,
  ].join('\n')}\n`;
}

const positive = wholeNumber({ min: 1 });

await runCommand(
  createCommand(
    'npm run mutation --',
    'Changes one condition, operator, literal or call of the product at a time, and runs the unit tests that import the file. A test must fail.',
  )
    .argument('[files...]', `patterns of source files (default: ${MUTATED.join(' ')})`)
    .option('--changed <revision>', 'only files that were changed since this Git revision')
    .addOption(new Option('--sample <n>', 'number of mutants (default: all)').argParser(positive))
    .addOption(
      new Option('--seed <n>', 'choice of the sample (default: a new one)').argParser(positive),
    )
    .addOption(
      new Option('--concurrency <n>', 'mutants tested at the same time')
        .argParser(positive)
        .default(availableParallelism()),
    )
    .addOption(
      new Option('--minimum <percent>', 'exit status 3 if the mutation score is lower')
        .argParser(wholeNumber({ min: 0, max: 100 }))
        .default(0),
    )
    .option('--json', 'print the results as JSON on stdout')
    .addHelpText(
      'after',
      `
The mutation score is the share of mutants that are killed or time out.

Examples:
  npm run mutation -- --sample 100
  npm run mutation -- --changed origin/main
  npm run mutation -- 'workflows/runner/*.ts'`,
    )
    .action(run),
);
