/** Runs one benchmark: `npm run bench -- NAME`. */
import { fileURLToPath } from 'node:url';
import { Argument, Option } from 'commander';
import { TEMPORAL_SERVERS, type TemporalServer } from '../lab/lab.ts';
import { createCommand, runCommand, startProgress, wholeNumber } from '../shared/commandLine.ts';
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

const positive = wholeNumber({ min: 1 });

async function run(name: string, flags: Flags): Promise<void> {
  const benchmark = BENCHMARKS.find((candidate) => candidate.name === name);
  if (!benchmark) throw new Error(`unknown benchmark "${name}"`); // commander has checked it
  const machine = describeMachine();
  const progress = startProgress();
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
    throw new Error(`--workers: not supported by ${benchmark.name}; remove the flag`);
  if ('defaultRuns' in benchmark) {
    if (flags.temporal !== 'dev')
      throw new Error(`--temporal: not supported by ${benchmark.name}; remove the flag`);
    if (flags.runners !== undefined || flags.cpuProfile !== undefined)
      throw new Error(
        `--runners, --cpu-profile: not supported by ${benchmark.name}; use --runs instead`,
      );
    return await benchmark.run({
      ...options,
      runs: flags.runs ?? benchmark.defaultRuns,
      kubelet: flags.kubelet === true,
    });
  }
  if (flags.runs !== undefined || flags.kubelet !== undefined)
    throw new Error(`--runs, --kubelet: not supported by ${benchmark.name}; use --runners instead`);
  return await withBenchEnvironment(
    options,
    async (world) => await benchmark.run(world, flags.runners ?? benchmark.defaultRunners),
  );
}

function show(benchmark: Benchmark, { figures, details }: Measured, { json }: Flags): void {
  if (json) console.log(JSON.stringify(nested(figures)));
  // With --json, standard output has only the JSON object.
  const print = json ? console.error : console.log;
  print(`\n${benchmark.name}: ${benchmark.summary}`);
  print(reportTable(benchmark, figures));
  print(`details: ${JSON.stringify(details)}\n`);
}

const program = createCommand(
  'npm run bench --',
  'Measures Holdfast on the real components: Temporal, etcd, the Kubernetes API server and KWOK nodes, all on this machine.',
)
  .addArgument(
    new Argument('<name>', 'benchmark to run').choices(BENCHMARKS.map(({ name }) => name)),
  )
  .addOption(
    new Option('--runners <n>', 'number of runners (default: see below)').argParser(positive),
  )
  .addOption(
    new Option(
      '--workers <n>',
      'scaleup, churn, steady, events, recovery: number of workers on the task queue',
    )
      .default(1)
      .argParser(positive),
  )
  .addOption(
    new Option(
      '--runs <n>',
      'supervisor: runs of each variant; job: number of steps; webhook: seconds of deliveries (default: see below)',
    ).argParser(positive),
  )
  .addOption(
    new Option('--kubelet', 'supervisor: also measure pods of a real kubelet (Linux, root)'),
  )
  .addOption(
    new Option(
      '--temporal <server>',
      'Temporal server: the dev server, or a cluster of one process per service on PostgreSQL',
    )
      .choices(TEMPORAL_SERVERS)
      .default('dev'),
  )
  .addOption(
    new Option('--json', 'print the figures as one JSON object on stdout, and the table on stderr'),
  )
  .addOption(new Option('--check', 'exit with status 3 when a budget is missed'))
  .addOption(new Option('--save', 'write the result, with date and machine, into .holdfast/bench'))
  .addOption(new Option('--note <text>', 'note to save with the result'))
  .addOption(
    new Option('--cpu-profile <folder>', 'write V8 CPU profiles of the worker into this folder'),
  )
  .addOption(
    new Option(
      '--cold',
      'scaleup, finish, churn, steady: measure a worker that has just started, instead of one that has run 100 runners',
    ),
  )
  .addOption(new Option('--keep', 'keep the components running, with their data'))
  .addOption(
    new Option('--state-dir <folder>', "folder of the components' data and logs")
      .default('.holdfast/bench')
      .env('HOLDFAST_BENCH_DIR'),
  )
  .addHelpText(
    'after',
    `
Benchmarks:
${BENCHMARKS.map((benchmark) => `  ${benchmark.name.padEnd(10)} ${benchmark.summary}\n${' '.repeat(13)}default: ${'defaultRuns' in benchmark ? `--runs ${benchmark.defaultRuns}` : `--runners ${benchmark.defaultRunners}`}`).join('\n')}

Starts the components it needs, and stops them and deletes their data at the end. Components that ran before keep running.
Settings HOLDFAST_MAX_* of your environment apply to the measured worker. Budgets and comparisons: docs/benchmarks.md

Exit status: 0 measured; 1 something failed; 3 (with --check) a budget is missed.

Examples:
  npm run bench -- lifecycle
  npm run bench -- scaleup --runners 500 --json
  npm run bench -- churn --temporal cluster --workers 2
  npm run bench -- supervisor --kubelet
  HOLDFAST_MAX_CACHED_WORKFLOWS=500 npm run bench -- recovery --cpu-profile /tmp/profiles`,
  )
  .action(run);

await runCommand(program);
