/** Options and help of `holdfast migrate …`. */
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
    .description('Migrate from another runner controller')
    .command('arc')
    .description('Convert actions-runner-controller objects to sets; apply nothing')
    .option(
      '-f, --file <path>',
      'File with its objects or with values of the chart gha-runner-scale-set; - for standard input (repeatable)',
      several,
    )
    .option('--cluster', 'Read its objects from a cluster; needs permission to list them')
    .option(
      '--kubeconfig <path>',
      'With --cluster: kubeconfig file (default: KUBECONFIG, the pod, ~/.kube/config)',
    )
    .option(
      '--context <name>',
      'With --cluster: context of the kubeconfig (default: the current context)',
    )
    .option('--kube-namespace <name>', 'With --cluster: Kubernetes namespace (default: all)')
    .option('--release <name>', 'Name of the Helm release, for values without runnerScaleSetName')
    .option('--out <path>', 'Write the sets to this new file, and the plan to standard output')
    .addOption(
      new Option(
        '--format <format>',
        'sets: for "holdfast set apply"; runnerset: Kubernetes resources; chart: values of the Holdfast chart',
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
(actions.summerwind.dev), and values of the chart gha-runner-scale-set. A field without a counterpart becomes a comment. A set that needs a decision
is written with "paused: true". Without --out, the sets go to standard output with the plan as a comment before them. See docs/migrate.md.

Examples:
  $ holdfast migrate arc --cluster --out sets.yaml
  $ helm get values arc-linux -o yaml | holdfast migrate arc -f - --release arc-linux --out sets.yaml
  $ holdfast migrate arc --cluster --format chart --out values.yaml
  $ holdfast set apply -f sets.yaml --dry-run`;
