/** `npm run bench -- NAME` */
import { fileURLToPath } from 'node:url';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { TEMPORAL_SERVERS, type TemporalServer } from '../lab/lab.ts';
import type { Benchmark, Measured } from './benchmark.ts';
import { BENCHMARKS } from './benchmarks/index.ts';
import { missed, nested, reportTable } from './report.ts';
import { describeMachine, saveResult } from './results.ts';
import { withBenchEnvironment, type WorldOptions } from './world.ts';

const RESULTS = fileURLToPath(new URL('../../.holdfast/bench', import.meta.url));

interface Flags {
  readonly runners?: number;
  readonly workers: number;
  readonly runs?: number;
  readonly kubelet?: true;
  readonly json?: true;
  readonly check?: true;
  readonly keep?: true;
  readonly cold?: true;
  readonly save?: true;
  readonly note?: string;
  readonly cpuProfile?: string;
  readonly temporal: TemporalServer;
  readonly stateDir: string;
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('It is not a whole number of at least 1.');
  return value;
}

/** Progress goes to stderr, with the time since the start. */
function progressSince(startedAt: number): (line: string) => void {
  return (line) =>
    console.error(`[${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s] ${line}`);
}

async function run(name: string, flags: Flags): Promise<void> {
  const benchmark = BENCHMARKS.find((candidate) => candidate.name === name);
  if (!benchmark) throw new Error(`there is no benchmark "${name}"`); // commander has checked it
  const machine = describeMachine();
  const progress = progressSince(performance.now());
  const options = {
    stateDir: flags.stateDir,
    keep: flags.keep === true,
    cold: flags.cold === true,
    temporal: flags.temporal,
    workers: flags.workers,
    progress,
    ...(flags.cpuProfile === undefined ? {} : { cpuProfileDir: flags.cpuProfile }),
  };
  const measured = await measure(benchmark, flags, options);
  show(benchmark, measured, flags);
  if (flags.save)
    progress(
      `saved: ${await saveResult(RESULTS, name, machine, { temporal: flags.temporal, workers: flags.workers }, measured, flags.note)}`,
    );
  if (flags.check && missed(benchmark, measured.figures).length > 0) process.exitCode = 3;
}

async function measure(
  benchmark: Benchmark,
  flags: Flags,
  options: WorldOptions,
): Promise<Measured> {
  if (flags.workers > 1 && benchmark.severalWorkers !== true)
    throw new Error(`${benchmark.name} has one worker, or none: leave out --workers`);
  if ('defaultRuns' in benchmark) {
    if (flags.temporal !== 'dev')
      throw new Error(
        `${benchmark.name} runs on Temporal's dev server, or without Temporal: leave out --temporal`,
      );
    if (flags.runners !== undefined || flags.cpuProfile !== undefined)
      throw new Error(`${benchmark.name} has no runners and no worker: use --runs`);
    return await benchmark.run({
      ...options,
      runs: flags.runs ?? benchmark.defaultRuns,
      kubelet: flags.kubelet === true,
    });
  }
  if (flags.runs !== undefined || flags.kubelet !== undefined)
    throw new Error(`${benchmark.name} has no --runs and no --kubelet: use --runners`);
  return await withBenchEnvironment(
    options,
    async (world) => await benchmark.run(world, flags.runners ?? benchmark.defaultRunners),
  );
}

function show(benchmark: Benchmark, { figures, details }: Measured, { json }: Flags): void {
  if (json) console.log(JSON.stringify(nested(figures)));
  // With --json standard output is for programs.
  const tell = json ? console.error : console.log;
  tell(`\n${benchmark.name}: ${benchmark.summary}`);
  tell(reportTable(benchmark, figures));
  tell(`details: ${JSON.stringify(details)}\n`);
}

const program = new Command('bench')
  .description(
    'Measures Holdfast on the real components: Temporal, etcd, the Kubernetes API server and KWOK nodes, all on this machine.',
  )
  .addArgument(
    new Argument('<name>', 'what to measure').choices(BENCHMARKS.map(({ name }) => name)),
  )
  .addOption(
    new Option('--runners <n>', 'how many runners (default: see below)').argParser(positive),
  )
  .addOption(
    new Option(
      '--workers <n>',
      'scaleup, churn, steady, events, recovery: workers on the one task queue',
    )
      .default(1)
      .argParser(positive),
  )
  .addOption(
    new Option(
      '--runs <n>',
      'supervisor: how often each variant; job: how many steps; webhook: seconds of deliveries (default: see below)',
    ).argParser(positive),
  )
  .addOption(new Option('--kubelet', 'supervisor: also on pods of a real kubelet (Linux, root)'))
  .addOption(
    new Option(
      '--temporal <server>',
      'which Temporal: its dev server, or its services in processes of their own on PostgreSQL',
    )
      .choices(TEMPORAL_SERVERS)
      .default('dev'),
  )
  .addOption(
    new Option(
      '--json',
      'print the figures as one JSON object on stdout; the table goes to stderr',
    ),
  )
  .addOption(new Option('--check', 'exit with status 3 when a budget is missed'))
  .addOption(
    new Option('--save', 'also write the result, with date and machine, into .holdfast/bench'),
  )
  .addOption(new Option('--note <text>', 'a remark to save with it'))
  .addOption(
    new Option('--cpu-profile <folder>', 'write V8 CPU profiles of the worker into this folder'),
  )
  .addOption(
    new Option(
      '--cold',
      'scaleup, finish, churn, steady: measure a worker that has just started, not one that has carried 100 lives',
    ),
  )
  .addOption(new Option('--keep', 'leave the components up, with everything in them'))
  .addOption(
    new Option('--state-dir <folder>', "the components' data and logs")
      .default('.holdfast/bench')
      .env('HOLDFAST_BENCH_DIR'),
  )
  .addHelpText(
    'after',
    `
Benchmarks:
${BENCHMARKS.map((benchmark) => `  ${benchmark.name.padEnd(10)} ${benchmark.summary}\n${' '.repeat(13)}default: ${'defaultRuns' in benchmark ? `--runs ${benchmark.defaultRuns}` : `--runners ${benchmark.defaultRunners}`}`).join('\n')}

Brings up what it needs and takes it down again, its data included; what was up before stays up. Settings HOLDFAST_MAX_* of your environment apply to the measured worker.
Budgets, and what others need for the same work: docs/benchmarks.md

Exit status: 0 measured; 1 something failed; 3 (with --check) a budget is missed.

Examples:
  npm run bench -- lifecycle
  npm run bench -- scaleup --runners 500 --json
  npm run bench -- churn --temporal cluster --workers 2
  npm run bench -- supervisor --kubelet
  HOLDFAST_MAX_CACHED_WORKFLOWS=500 npm run bench -- recovery --cpu-profile /tmp/profiles`,
  )
  .action(run);

try {
  await program.parseAsync();
} catch (error) {
  const { message, cause } = error as Error;
  console.error(`bench: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`);
  process.exitCode = 1;
}
