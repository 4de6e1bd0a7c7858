/** `npm run chaos` */
import { randomInt } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
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
  readonly why?: true;
  readonly jobs: number;
  readonly kills: number;
  readonly json?: true;
  readonly stateDir: string;
}

/** A kubelet's runners are processes of this machine. */
const RUNNERS = { kwok: 50, kubelet: 5 } as const;

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0)
    throw new InvalidArgumentError('It is not a whole number.');
  return value;
}

async function chaos(flags: Flags): Promise<void> {
  const { nodes, seed = randomInt(1, 2 ** 31), runners = RUNNERS[nodes] } = flags;
  const durationMs = (flags.minutes * 60 + flags.seconds) * 1_000 || 120_000;
  const startedAt = performance.now();
  const progress = (line: string): void =>
    console.error(
      `[${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s] ${line}`,
    );
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
  // With --json standard output is for programs.
  const tell = flags.json ? console.error : console.log;
  for (const line of reportLines(report)) tell(line);
  if (flags.json) console.log(JSON.stringify(report));
  if (report.violations.length > 0) process.exitCode = 3;
}

async function scaleSetChaos(
  { jobs, kills, stateDir, json }: Flags,
  seed: number,
  progress: (line: string) => void,
): Promise<void> {
  const report = await runScaleSetChaos({ seed, jobs, kills, stateDir, progress });
  for (const line of scaleSetLines(report)) (json ? console.error : console.log)(line);
  if (json) console.log(JSON.stringify(report));
  if (report.violations.length > 0) process.exitCode = 3;
}

const program = new Command('chaos')
  .description(
    'Lets everything go wrong around runners on the real components, and judges what they made of it.',
  )
  .addOption(
    new Option(
      '--minutes <n>',
      'how long things go wrong; with --seconds on top (default: 2 minutes)',
    )
      .argParser(whole)
      .default(0, ''),
  )
  .addOption(new Option('--seconds <n>', '').argParser(whole).default(0, ''))
  .addOption(
    new Option(
      '--seed <n>',
      'what happens when, and to whom; the same seed is the same schedule (default: a new one)',
    ).argParser(whole),
  )
  .addOption(
    new Option(
      '--runners <n>',
      `how many runners there are about (default: ${RUNNERS.kwok} on KWOK, ${RUNNERS.kubelet} on the kubelet)`,
    ).argParser(whole),
  )
  .addOption(
    new Option('--nodes <kind>', 'fake nodes, or this machine as a node (Linux, root)')
      .choices(['kwok', 'kubelet'])
      .default('kwok'),
  )
  .addOption(
    new Option(
      '--why',
      'only faults that keep jobs waiting, one after the other, each for a minute or more',
    ),
  )
  .addOption(
    new Option('--scale-sets', 'kill the workers while GitHub assigns jobs to a scale set'),
  )
  .addOption(
    new Option('--jobs <n>', 'with --scale-sets: how many at least, one a second')
      .argParser(whole)
      .default(1_000),
  )
  .addOption(
    new Option(
      '--kills <n>',
      'with --scale-sets: how often, every 20 s, or later if the session is not continued yet',
    )
      .argParser(whole)
      .default(50),
  )
  .addOption(new Option('--json', 'print the report as one JSON object on stdout'))
  .addOption(
    new Option('--state-dir <folder>', "the components' data and all logs")
      .default('.holdfast/chaos')
      .env('HOLDFAST_CHAOS_DIR'),
  )
  .addHelpText(
    'after',
    `
Schedule, jobs and targets come from the seed; what interleaves on the machine does not: a violation may need several runs to come again.
Docs: docs/testing.md

Exit status: 0 all well; 1 the run itself failed; 3 there are violations.`,
  )
  .action(chaos);

try {
  await program.parseAsync();
} catch (error) {
  const { message, cause } = error as Error;
  console.error(
    `chaos: ${message}${cause instanceof Error ? `: ${cause.stack ?? cause.message}` : ''}`,
  );
  process.exitCode = 1;
}
