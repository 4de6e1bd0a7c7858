/** `npm run fuzz` */
import { randomInt } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { TargetReport } from './fuzz.ts';
import { fuzzInThread } from './fuzzInThread.ts';
import { TARGETS } from './targets/index.ts';

interface Flags {
  readonly cases: number;
  readonly target?: string;
  readonly seed?: number;
  readonly path?: string;
  readonly json?: true;
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('It is not a whole number of at least 1.');
  return value;
}

function line({ target, cases, seed, seconds, slowestMs, finding }: TargetReport): string {
  const figures = `${target.padEnd(12)} ${String(cases).padStart(7)} cases in ${seconds.toFixed(1)} s, the slowest with ${slowestMs.toFixed(0)} ms of CPU`;
  if (finding === undefined) return figures;
  return `${figures}: FOUND\n  again: npm run fuzz -- --target ${target} --seed ${seed} --path ${finding.path}\n  input: ${finding.input}\n  ${finding.error.replaceAll('\n', '\n  ')}`;
}

async function run({
  cases,
  target,
  seed = randomInt(1, 2 ** 31),
  path,
  json,
}: Flags): Promise<void> {
  // With --json standard output is for programs.
  const tell = json ? console.error : console.log;
  tell(`seed ${seed}`);
  const reports: TargetReport[] = [];
  for (const each of TARGETS.filter(({ name }) => target === undefined || name === target)) {
    const report = await fuzzInThread(each, {
      targets: new URL('targets/index.ts', import.meta.url),
      cases,
      seed,
      ...(path === undefined ? {} : { path }),
    });
    tell(line(report));
    reports.push(report);
  }
  if (json) console.log(JSON.stringify(reports));
  if (reports.some(({ finding }) => finding !== undefined)) process.exitCode = 3;
}

const program = new Command('fuzz')
  .description(
    'Feeds everything that comes from outside with real examples that were broken: no crash, no second of CPU, no error without a clear message.',
  )
  .addOption(
    new Option('--cases <n>', 'how many for each target').argParser(whole).default(100_000),
  )
  .addOption(
    new Option('--target <name>', 'one of them only').choices(TARGETS.map(({ name }) => name)),
  )
  .addOption(
    new Option('--seed <n>', 'the same seed is the same cases (default: a new one)').argParser(
      whole,
    ),
  )
  .addOption(new Option('--path <path>', 'one case of a seed again, as a finding names it'))
  .addOption(new Option('--json', 'print the reports as JSON on stdout'))
  .addHelpText(
    'after',
    `
Targets:
${TARGETS.map(({ name, summary }) => `  ${name.padEnd(12)} ${summary}`).join('\n')}

Docs: docs/testing.md

Exit status: 0 nothing found; 1 the run itself failed; 3 something was found.`,
  )
  .action(run);

try {
  await program.parseAsync();
} catch (error) {
  console.error(`fuzz: ${(error as Error).message}`);
  process.exitCode = 1;
}
