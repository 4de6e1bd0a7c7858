/** Runs chaos: `npm run chaos`. */
import { randomInt } from 'node:crypto';
import { Option } from 'commander';
import { createCommand, runCommand, startProgress, wholeNumber } from '../shared/commandLine.ts';
import { reportLines } from './report.ts';
import { runScaleSetChaos, scaleSetLines } from './scaleSets.ts';
import { runChaos } from './run.ts';

interface Flags {
  readonly minutes: number;
  readonly seconds: number;
  readonly seed?: number;
  readonly runners?: number;
  readonly nodes: 'kwok' | 'kubelet';
  readonly scaleSets?: true;
  readonly cutOff?: true;
  readonly why?: true;
  readonly jobs: number;
  readonly kills: number;
  readonly json?: true;
  readonly stateDir: string;
}

/** Default numbers of runners. On a kubelet, runners are processes of this machine. */
const RUNNERS = { kwok: 50, kubelet: 5 } as const;

const whole = wholeNumber({ min: 0 });

async function chaos(flags: Flags): Promise<void> {
  const { nodes, seed = randomInt(1, 2 ** 31), runners = RUNNERS[nodes] } = flags;
  const durationMs = (flags.minutes * 60 + flags.seconds) * 1_000 || 120_000;
  const progress = startProgress();
  progress(`seed ${seed}`);
  if (flags.scaleSets) {
    await scaleSetChaos(flags, seed, progress);
    return;
  }
  const report = await runChaos({
    seed,
    durationMs,
    runners,
    nodes,
    why: flags.why === true,
    stateDir: flags.stateDir,
    progress,
  });
  // With --json, standard output has only the JSON object.
  const print = flags.json ? console.error : console.log;
  for (const line of reportLines(report)) print(line);
  if (flags.json) console.log(JSON.stringify(report));
  if (report.violations.length > 0) process.exitCode = 3;
}

async function scaleSetChaos(
  { jobs, kills, cutOff, stateDir, json }: Flags,
  seed: number,
  progress: (line: string) => void,
): Promise<void> {
  const report = await runScaleSetChaos({
    seed,
    jobs,
    kills,
    fault: cutOff === true ? 'cut off' : 'kill',
    stateDir,
    progress,
  });
  for (const line of scaleSetLines(report)) (json ? console.error : console.log)(line);
  if (json) console.log(JSON.stringify(report));
  if (report.violations.length > 0) process.exitCode = 3;
}

const program = createCommand(
  'npm run chaos --',
  'Injects faults around runners and runner sets on the real components, and checks invariants.',
)
  .addOption(
    new Option('--minutes <n>', 'duration of the faults; added to --seconds (default: 2 minutes)')
      .argParser(whole)
      .default(0, ''),
  )
  .addOption(
    new Option('--seconds <n>', 'duration of the faults; added to --minutes (default: 0)')
      .argParser(whole)
      .default(0, ''),
  )
  .addOption(
    new Option(
      '--seed <n>',
      'seed of the schedule: the same seed gives the same faults, targets and times (default: a new one)',
    ).argParser(whole),
  )
  .addOption(
    new Option(
      '--runners <n>',
      `approximate number of runners (default: ${RUNNERS.kwok} on KWOK, ${RUNNERS.kubelet} on the kubelet)`,
    ).argParser(whole),
  )
  .addOption(
    new Option('--nodes <kind>', 'nodes: fake ones (KWOK), or this machine (kubelet; Linux, root)')
      .choices(['kwok', 'kubelet'])
      .default('kwok'),
  )
  .addOption(
    new Option(
      '--why',
      'inject only faults that keep jobs waiting, one at a time, each for at least a minute; compare `holdfast why` with the active fault',
    ),
  )
  .addOption(
    new Option(
      '--scale-sets',
      'kill the workers while GitHub assigns jobs to a scale set; no other faults',
    ),
  )
  .addOption(
    new Option(
      '--cut-off',
      'with --scale-sets: cut off the worker with the session from Temporal, instead of kills',
    ),
  )
  .addOption(
    new Option('--jobs <n>', 'with --scale-sets: minimum number of jobs, one per second')
      .argParser(whole)
      .default(1_000),
  )
  .addOption(
    new Option(
      '--kills <n>',
      'with --scale-sets: number of kills, one per 20 s, or later while a session has not resumed',
    )
      .argParser(whole)
      .default(50),
  )
  .addOption(new Option('--json', 'print the report as one JSON object on stdout'))
  .addOption(
    new Option('--state-dir <folder>', "folder of the components' data and all logs")
      .default('.holdfast/chaos')
      .env('HOLDFAST_CHAOS_DIR'),
  )
  .addHelpText(
    'after',
    `
The seed determines schedule, jobs and targets, but not the interleaving on the machine: a violation may need several runs to recur.
Docs: docs/testing.md

Exit status: 0 no violations; 1 the run failed; 3 violations.`,
  )
  .action(chaos);

await runCommand(program, { causeStack: true });
