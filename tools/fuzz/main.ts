/** Runs the fuzzer: `npm run fuzz`. */
import { randomInt } from 'node:crypto';
import { Option } from 'commander';
import { createCommand, runCommand, wholeNumber } from '../shared/commandLine.ts';
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

const positive = wholeNumber({ min: 1 });

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

const program = createCommand(
  'npm run fuzz --',
  'Passes mutated real examples to every parser of external input. Finds crashes, hangs, cases that take a second of CPU, and errors without a clear message.',
)
  .addOption(
    new Option('--cases <n>', 'number of cases for each target')
      .argParser(positive)
      .default(100_000),
  )
  .addOption(
    new Option('--target <name>', 'run this target only (default: all)').choices(
      TARGETS.map(({ name }) => name),
    ),
  )
  .addOption(
    new Option(
      '--seed <n>',
      'seed: the same seed gives the same cases (default: a new one)',
    ).argParser(positive),
  )
  .addOption(
    new Option('--path <path>', 'run only this case of the seed, as printed with a finding'),
  )
  .addOption(new Option('--json', 'print the reports as JSON on stdout'))
  .addHelpText(
    'after',
    `
Targets:
${TARGETS.map(({ name, summary }) => `  ${name.padEnd(12)} ${summary}`).join('\n')}

Docs: docs/testing.md

Exit status: 0 no finding; 1 the run failed; 3 a finding.`,
  )
  .action(run);

await runCommand(program);
