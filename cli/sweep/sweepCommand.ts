/** `holdfast sweep`: its options and help. */
import type { Command } from 'commander';
import type { SweepInput, SweepReport } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { withSession, type CommandContext } from '../shared/commandContext.ts';
import { CliError } from '../shared/exit.ts';

/** Flags of `holdfast sweep`. */
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
 * @param environment - the settings of the worker, with the connection options written into them
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
    .description(
      'find what workflows, pods and registrations have left behind; mark it, and repair what was marked before and still is so',
    )
    .option('--dry-run', 'look and report; mark and repair nothing')
    .option(
      '--standalone',
      "in this process, without any worker: needs the worker's settings, and the permissions of deploy/sweep.yaml",
    )
    .option(
      '--force',
      'go on where it would stop: when more than half of ten or more pods are condemned, or Temporal knows no runner of this place',
    )
    .option(
      '--take-over <namespace id>',
      "sweep what another Temporal namespace has left as if it were this one's, pods that live included; run it twice: the first sweep marks",
    )
    .option('--org <name>', 'look at this organization, too (may be repeated)', several)
    .option('--repo <owner/name>', 'look at this repository, too (may be repeated)', several)
    .option('--enterprise <name>', 'look at this enterprise, too (may be repeated)', several)
    .option('--credential <name>', 'the credential for these scopes (default "default")')
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

/** What the flags ask for, as the workflow is given it. @throws CliError usage */
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
      '--credential: is for the scopes of --org, --repo and --enterprise; give one of them',
    );
  return {
    ...omitUndefined({ dryRun, force, takeOver }),
    ...(named.length === 0
      ? {}
      : { scopes: named.map((scope) => ({ ...scope, ...omitUndefined({ credential }) })) }),
  };
}

const HELP = `
Without --standalone a worker does it (the workflow "sweep"), and this command waits for the report. What is found first is marked; the next sweep, by
this command or by the Schedule, repairs it. Exit status 0: all is well, marked or repaired; 1: something could not be repaired, a list could not be had,
or it stopped; 4: Temporal does not answer. Where a list could not be had, where it stopped, and without Temporal, nothing was touched.

Examples:
  $ holdfast sweep --dry-run
  $ holdfast sweep
  $ holdfast sweep --standalone --json`;
