/**
 * Implements `holdfast migrate arc`, which reads objects of ARC and writes sets and the plan of the
 * migration. It applies nothing.
 */
import { writeFileSync } from 'node:fs';
import { loadKubeConfig, KubeConfigError } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { YamlError, yamlDocuments } from '../../worker/settings/yamlDocuments.ts';
import { readFileText, displayPath } from '../runner/runnerFlags.ts';
import { admitSets } from '../set/setAdmission.ts';
import { readSetDocuments } from '../set/setDocuments.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import type { FoundValue } from './chartValues.ts';
import { clusterObjects } from './clusterObjects.ts';
import { convertArc, type MigratedSet } from './convertArc.ts';
import { migrationPlan } from './migrationPlan.ts';
import type { SetFormat } from './setFormats.ts';
import { setsYaml } from './setsYaml.ts';

/** Options of `holdfast migrate arc`. */
export interface MigrateFlags {
  readonly file?: readonly string[];
  readonly cluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly kubeNamespace?: string;
  readonly release?: string;
  readonly out?: string;
  /** Format of the output. @default 'sets' */
  readonly format?: SetFormat;
}

/** Maximum number of errors shown. Further ones are only counted. */
const MAX_FAULTS = 50;

/**
 * Writes the runner sets that correspond to ARC objects, and the plan of the migration.
 * @param now - current time (ms since the epoch)
 * @throws CliError `usage`; `invalid_input` with all errors; `failed` if a list cannot be read
 */
export async function migrateArc(output: Output, flags: MigrateFlags, now: number): Promise<void> {
  const { file = [], cluster, kubeNamespace, release, out, format = 'sets' } = flags;
  if (file.length === 0 && cluster !== true)
    throw new CliError(
      'usage',
      'give the objects of ARC: -f FILE, -f - for standard input, or --cluster',
    );
  const found = [
    ...file.flatMap(documentsOf),
    ...(cluster === true ? await clusterObjects(kubeConfigOf(flags), kubeNamespace) : []),
  ];
  const { sets, skipped, errors } = convertArc(found, { now, ...omitUndefined({ release }) });
  if (errors.length > 0) {
    const more =
      errors.length > MAX_FAULTS
        ? [{ field: 'input', message: `has ${errors.length - MAX_FAULTS} more of them` }]
        : [];
    throw new CliError('invalid_input', 'the objects cannot be converted; nothing was written', {
      fields: [...errors.slice(0, MAX_FAULTS), ...more],
    });
  }
  if (sets.length === 0)
    throw new CliError('invalid_input', 'found no objects of ARC that define runners', {
      fields: skipped
        .slice(0, MAX_FAULTS)
        .map(({ label, reason }) => ({ field: `${label}:`, message: reason })),
    });
  const plan = migrationPlan(sets, skipped, { file: out ?? 'sets.yaml', format });
  // Parse the output like "set apply" does, so that it can be applied.
  const asSets = setsYaml(sets, plan);
  admitSets(readSetDocuments(asSets, out ?? 'the output'), out ?? 'the output');
  const text = format === 'sets' ? asSets : setsYaml(sets, plan, format);
  if (out !== undefined) write(out, text);
  if (output.json)
    output.result({ sets: sets.map(shown), skipped, plan, ...omitUndefined({ out }) }, []);
  // The text contains no control characters.
  else if (out === undefined) output.terminal.stdout.write(text);
  else
    output.result(undefined, [
      `${out}: ${sets.length} ${sets.length === 1 ? 'set' : 'sets'}`,
      ...plan,
    ]);
  for (const { input, warnings } of sets)
    for (const warning of warnings) output.note('warning', `warning: ${input.name}: ${warning}`);
}

function documentsOf(path: string): FoundValue[] {
  const shownAs = displayPath(path);
  try {
    return yamlDocuments(readFileText(path)).map(({ value }, index) => ({
      source: `${shownAs}, document ${index + 1}`,
      value,
    }));
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new CliError('invalid_input', `${shownAs} ${error.message}`, {
      fields: error.errors.map(({ document, message }) => ({
        field: document === undefined ? 'input' : `document ${document}`,
        message,
      })),
      cause: error,
    });
  }
}

function kubeConfigOf({ kubeconfig, context }: MigrateFlags): ReturnType<typeof loadKubeConfig> {
  try {
    return loadKubeConfig(omitUndefined({ path: kubeconfig, context }));
  } catch (error) {
    if (error instanceof KubeConfigError)
      throw new CliError('usage', `--cluster: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Writes a new file. It does not overwrite one, which may have been edited. */
function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx' });
  } catch (error) {
    const reason =
      (error as NodeJS.ErrnoException).code === 'EEXIST'
        ? 'it already exists; give another file, or remove it'
        : (error as Error).message;
    throw new CliError('usage', `--out: failed to write ${path}: ${reason}`, { cause: error });
  }
}

function shown({
  from,
  autoscaler,
  input,
  notes,
  policy,
  podPolicy,
  security,
}: MigratedSet): object {
  return {
    from: from.label,
    ...(autoscaler === undefined ? {} : { autoscaler: autoscaler.label }),
    notes: notes.map(({ field, text, needsDecision }) => ({ field, text, needsDecision })),
    podSecurity: security,
    policy,
    podPolicy,
    set: input,
  };
}
