/** `holdfast migrate …`: its options and help. */
import { Option, type Command } from 'commander';
import type { CommandContext } from '../shared/commandContext.ts';
import type { MigrateFlags } from './migrateArc.ts';
import { SET_FORMATS } from './setFormats.ts';

/** Adds `holdfast migrate arc` to the program. */
export function addMigrateCommands(program: Command, { output }: CommandContext): void {
  const several = (value: string, before: readonly string[] | undefined): readonly string[] => [
    ...(before ?? []),
    value,
  ];
  program
    .command('migrate')
    .description('from another controller of runners to sets of Holdfast')
    .command('arc')
    .description(
      'write the sets that correspond to what actions-runner-controller has, and the way over; apply nothing',
    )
    .option(
      '-f, --file <path>',
      'YAML or JSON of its objects, or values of the chart gha-runner-scale-set; - for standard input (may be repeated)',
      several,
    )
    .option('--cluster', 'its objects in a cluster; the permission to list them is enough')
    .option(
      '--kubeconfig <path>',
      'with --cluster: a kubeconfig file (default: KUBECONFIG, the pod, ~/.kube/config)',
    )
    .option('--context <name>', 'with --cluster: a context of it (default: the current one)')
    .option(
      '--kube-namespace <name>',
      'with --cluster: this Kubernetes namespace alone (default: all)',
    )
    .option(
      '--release <name>',
      'of Helm, for values without runnerScaleSetName: what the scale set is called',
    )
    .option(
      '--out <path>',
      'write the sets to this file, which must not exist, and the plan to standard output',
    )
    .addOption(
      new Option(
        '--format <format>',
        'sets, for "holdfast set apply"; runnerset, Kubernetes resources; chart, values of Holdfast\'s chart',
      )
        .choices(SET_FORMATS)
        .default('sets'),
    )
    .addHelpText('after', HELP)
    .action(async (flags: MigrateFlags) => {
      const { migrateArc } = await import('./migrateArc.ts');
      await migrateArc(output, flags, Date.now());
    });
}

const HELP = `
Reads AutoscalingRunnerSet (actions.github.com), RunnerDeployment, RunnerReplicaSet, RunnerSet, Runner and HorizontalRunnerAutoscaler
(actions.summerwind.dev), and values of the chart gha-runner-scale-set. What has no counterpart is a comment at its place; what must be decided
first has the set written paused. Without --out the sets are on standard output, with the plan as a comment before them. See docs/migrate.md.

Examples:
  $ holdfast migrate arc --cluster --out sets.yaml
  $ helm get values arc-linux -o yaml | holdfast migrate arc -f - --release arc-linux --out sets.yaml
  $ holdfast migrate arc --cluster --format chart --out values.yaml
  $ holdfast set apply -f sets.yaml --dry-run`;
