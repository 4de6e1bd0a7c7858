/** Options and help of `holdfast sweep`. */
import type { Command } from 'commander';
import type { SweepInput, SweepReport } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { withSession, type CommandContext } from '../shared/commandContext.ts';
import { CliError } from '../shared/exit.ts';

/** Options of `holdfast sweep`. */
export interface SweepFlags {
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly takeOver?: string;
  readonly standalone?: boolean;
  readonly org?: readonly string[];
  readonly repo?: readonly string[];
  readonly enterprise?: readonly string[];
  readonly credential?: string;
}

/**
 * Adds `holdfast sweep` to the program.
 * @param environment - settings of the worker, with the connection options added
 */
export function addSweepCommand(
  program: Command,
  context: CommandContext,
  environment: () => Record<string, string | undefined>,
): void {
  const several = (value: string, before: readonly string[] | undefined): readonly string[] => [
    ...(before ?? []),
    value,
  ];
  const command = program
    .command('sweep')
    .description('Find and remove orphaned pods, objects and registrations')
    .option('--dry-run', 'Report only; mark and repair nothing')
    .option(
      '--standalone',
      'Sweep in this process, without a worker; needs the settings of the worker and the permissions of deploy/sweep.yaml',
    )
    .option(
      '--force',
      'Continue where the sweep would stop: if it would delete more than half of ten or more pods, or Temporal knows no runner of this location',
    )
    .option(
      '--take-over <namespace id>',
      'Sweep the objects of another Temporal namespace as if they were of this one, running pods included; run it twice: the first sweep marks',
    )
    .option('--org <name>', 'Sweep this organization too (repeatable)', several)
    .option('--repo <owner/name>', 'Sweep this repository too (repeatable)', several)
    .option('--enterprise <name>', 'Sweep this enterprise too (repeatable)', several)
    .option('--credential <name>', 'Credential for these scopes (default "default")')
    .addHelpText('after', HELP)
    .action(async (flags: SweepFlags) => {
      const [{ parseSweepInput }, { printSweep: showSweep }] = await Promise.all([
        import('../../core/input/sweep.ts'),
        import('./sweepReport.ts'),
      ]);
      const input = sweepInput(flags);
      const parsed = parseSweepInput(input);
      if (!parsed.ok)
        throw new CliError('invalid_input', 'the input of the sweep is invalid', {
          fields: parsed.errors,
        });
      const show = (report: SweepReport): void => context.exit(showSweep(context.output, report));
      if (flags.standalone !== true) {
        const { sweepByWorker } = await import('./sweepByWorker.ts');
        return await withSession(command, context, async (session) =>
          show(await sweepByWorker(session, context.output, input)),
        );
      }
      const { standaloneConfig, sweepStandalone } = await import('./sweepStandalone.ts');
      const config = standaloneConfig(environment());
      await withSession(command, context, async (session) =>
        show(await sweepStandalone(session, context.output, config, parsed.spec)),
      );
    });
}

/**
 * Returns the workflow input for the options.
 * @throws CliError `usage`
 */
export function sweepInput({
  dryRun,
  force,
  takeOver,
  org = [],
  repo = [],
  enterprise = [],
  credential,
}: SweepFlags): SweepInput {
  const named = [
    ...org.map((organization) => ({ organization })),
    ...repo.map((repository) => ({ repository })),
    ...enterprise.map((each) => ({ enterprise: each })),
  ];
  if (credential !== undefined && named.length === 0)
    throw new CliError(
      'usage',
      '--credential: must be used with --org, --repo or --enterprise; add one of them',
    );
  return {
    ...omitUndefined({ dryRun, force, takeOver }),
    ...(named.length === 0
      ? {}
      : { scopes: named.map((scope) => ({ ...scope, ...omitUndefined({ credential }) })) }),
  };
}

const HELP = `
Without --standalone, a worker runs the workflow "sweep" and this command waits for its report. The first sweep marks what it finds; the next sweep,
by this command or by the Schedule, repairs it. Exit status 0: everything is in order, marked or repaired; 1: a repair failed, a list was incomplete,
or the sweep stopped; 4: Temporal does not answer. If a list is incomplete, if the sweep stops, or without Temporal, nothing is changed.

Examples:
  $ holdfast sweep --dry-run
  $ holdfast sweep
  $ holdfast sweep --standalone --json`;
