/** Explores the model of a runner: `npm run explore`. */
import { Option } from 'commander';
import { createCommand, repeated, runCommand, wholeNumber } from '../shared/commandLine.ts';
import { FAULTS, MAX_FAULTS, SETUPS } from './explore.ts';
import { PAIRS } from './faultPairs.ts';
import { MUTATED } from './mutationTesting.ts';
import type { ExploreFlags } from './exploreFlags.ts';
import { reportExploration } from './reportExploration.ts';
import { reportMutations } from './reportMutations.ts';
import { reportPairs } from './reportPairs.ts';

const COMBINATIONS = PAIRS.length * SETUPS.length;
const only = (option: string, mode: '--pairs' | '--mutations'): string =>
  `${option} is for ${mode} only`;

/** Returns what is wrong with a combination of options. */
function conflict(flags: ExploreFlags): string | undefined {
  if (flags.pairs && flags.mutations) return 'use either --pairs or --mutations';
  if (!flags.pairs && flags.seed !== undefined) return only('--seed', '--pairs');
  if (!flags.pairs && flags.from !== undefined) return only('--from', '--pairs');
  if (!flags.pairs && flags.seconds !== undefined) return only('--seconds', '--pairs');
  if (!flags.mutations && flags.table !== undefined) return only('--table', '--mutations');
  if (flags.pairs && flags.json) return '--json does not support --pairs';
  return undefined;
}

async function run(flags: ExploreFlags): Promise<void> {
  const message = conflict(flags);
  if (message !== undefined) throw new Error(message);
  if (flags.mutations) await reportMutations(flags);
  else if (flags.pairs) reportPairs(flags);
  else reportExploration(flags);
}

const depths = SETUPS.map((setup) => `  ${setup.padEnd(26)} ${MAX_FAULTS[setup]}`).join('\n');

await runCommand(
  createCommand(
    'npm run explore --',
    'Model-checks the lifecycle of a runner and the plan of a runner set. Calls the functions of the workflows in every reachable state of a model of Temporal, Kubernetes and the CI server, and checks invariants.',
  )
    .addOption(
      new Option(
        '--depth <n>',
        'maximum number of faults and timeouts in a trace (default: see below; not for --pairs, which has 2)',
      ).argParser(wholeNumber({ min: 0 })),
    )
    .addOption(
      new Option('--states <n>', 'maximum number of states of each kind of runner, or of each pair')
        .argParser(wholeNumber({ min: 1 }))
        .default(2_000_000),
    )
    .addOption(
      new Option('--setup <name>', 'kind of runner; can be repeated (default: all)').argParser(
        repeated(SETUPS),
      ),
    )
    .option('--stories', 'also print the traces of known violations')
    .option('--json', 'print the result as JSON')
    .option(
      '--pairs',
      `explore traces with two faults: all ${COMBINATIONS} combinations of a pair of faults and a kind of runner`,
    )
    .addOption(
      new Option(
        '--seed <n>',
        'with --pairs: seed of a random order of the combinations (default: the order of the model)',
      ).argParser(wholeNumber({ min: 0 })),
    )
    .addOption(
      new Option(
        '--from <n>',
        'with --pairs: index of the first combination, to continue a stopped run (default: 0)',
      ).argParser(wholeNumber({ min: 0, max: COMBINATIONS - 1 })),
    )
    .addOption(
      new Option(
        '--seconds <n>',
        'with --pairs: CPU time after which no further combination starts (default: no limit)',
      ).argParser(wholeNumber({ min: 1 })),
    )
    .option(
      '--mutations',
      'change each condition of the decision tables, and show whether the model or a table test catches it',
    )
    .addOption(
      new Option(
        '--table <name>',
        'with --mutations: decision table; can be repeated (default: all)',
      ).argParser(repeated(MUTATED)),
    )
    .addHelpText(
      'after',
      `
Kinds of runners, with the default of --depth:
${depths}

Decision tables: ${MUTATED.join(', ')}
The model has ${FAULTS.length} faults and timeouts. Docs: docs/testing.md

Exit status: 0 no new violation; 1 a new violation, a known one that no longer occurs, or a mutant that nothing catches.

Examples:
  npm run explore -- --setup static --stories
  npm run explore -- --pairs --seed 7 --seconds 600
  npm run explore -- --pairs --from 1200
  npm run explore -- --mutations --table verdicts`,
    )
    .action(run),
);
