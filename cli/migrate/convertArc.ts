/** Converts ARC objects to runner sets. Pure. */
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { MAX_SET_NAME } from '../../core/domain/setRunnerNames.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';
import type { FieldError } from '../shared/exit.ts';
import { findArcObjects, type ArcObject, type SkippedObject } from './arcObjects.ts';
import type { FoundValue } from './chartValues.ts';
import { convertAutoscaler, targetOf } from './autoscalerRows.ts';
import { convertLegacy } from './legacyRows.ts';
import { podNeeds, type PodNeeds } from './policyNeeds.ts';
import { convertScaleSet } from './scaleSetRows.ts';
import { quoted, SetDraft, type MigrationNote } from './setDraft.ts';

/** Options of {@link convertArc}. */
export interface MigrationOptions {
  /** Helm release. It is the name of a scale set whose values do not contain one. */
  readonly release?: string;
  /** Current time (ms since the epoch). Schedules that have ended are left out. */
  readonly now: number;
}

/** Valid runner set with notes for the user. */
export interface MigratedSet extends PodNeeds {
  readonly from: ArcObject;
  /** Autoscaler that defines its size, if there is one. */
  readonly autoscaler?: ArcObject;
  readonly input: RunnerSetInput;
  readonly notes: readonly MigrationNote[];
  readonly warnings: readonly string[];
}

/** Result of a migration: the runner sets, the skipped objects and all errors. */
export interface Migration {
  readonly sets: readonly MigratedSet[];
  readonly skipped: readonly SkippedObject[];
  /** All errors, each with the object and field. */
  readonly errors: readonly FieldError[];
}

/** Converts ARC objects and chart values to runner sets. Objects with errors yield no set. */
export function convertArc(
  found: readonly FoundValue[],
  { release, now }: MigrationOptions,
): Migration {
  const { objects, leftOut } = findArcObjects(found);
  const { autoscalers, unused } = pairAutoscalers(objects);
  const taken = new Set<string>();
  const sets: MigratedSet[] = [];
  const errors: FieldError[] = [];
  for (const from of objects.filter(({ kind }) => kind !== 'HorizontalRunnerAutoscaler')) {
    const draft = new SetDraft(from.label);
    const autoscaler = autoscalers.get(from);
    convert(from, autoscaler, draft, { release, now, taken });
    const migrated = draft.faults.length === 0 ? validated(from, draft) : undefined;
    if (migrated !== undefined)
      sets.push({ ...migrated, ...(autoscaler === undefined ? {} : { autoscaler }) });
    errors.push(...draft.faults);
  }
  return { sets, skipped: [...leftOut, ...unused], errors };
}

function convert(
  from: ArcObject,
  autoscaler: ArcObject | undefined,
  draft: SetDraft,
  { release, now, taken }: { release: string | undefined; now: number; taken: Set<string> },
): void {
  const isScaleSet = from.kind === 'values' || from.kind === 'AutoscalingRunnerSet';
  const name = (isScaleSet && from.fields['runnerScaleSetName']) || from.name || release;
  if (typeof name !== 'string' || name === '') {
    return draft.addError(
      'runnerScaleSetName',
      'is required; set it, or the name of the Helm release (--release), which jobs have in runs-on',
    );
  }
  draft.put('set', 'name', setName(name, taken, draft));
  if (isScaleSet) return convertScaleSet(from, draft, name);
  if (autoscaler !== undefined) convertAutoscaler(autoscaler, draft, now);
  convertLegacy(from, draft, autoscaler !== undefined);
}

/**
 * Returns whether two namespaces may be the same. A manifest may omit its namespace and get it from
 * `kubectl -n`.
 */
const sameNamespace = (one: string | undefined, other: string | undefined): boolean =>
  one === undefined || other === undefined || one === other;

/** Assigns each autoscaler to the object that it scales: the one with its name in its namespace. */
function pairAutoscalers(objects: readonly ArcObject[]): {
  autoscalers: Map<ArcObject, ArcObject>;
  unused: SkippedObject[];
} {
  const autoscalers = new Map<ArcObject, ArcObject>();
  const unused: SkippedObject[] = [];
  for (const autoscaler of objects.filter(({ kind }) => kind === 'HorizontalRunnerAutoscaler')) {
    const wanted = targetOf(autoscaler);
    const target = objects.find(
      ({ kind, name, namespace }) =>
        `${kind}/${name}` === wanted && sameNamespace(namespace, autoscaler.namespace),
    );
    if (target === undefined)
      unused.push({
        label: autoscaler.label,
        reason: `its target ${quoted(wanted)} is not among the given objects`,
      });
    else if (autoscalers.has(target))
      unused.push({ label: autoscaler.label, reason: `${quoted(wanted)} has another autoscaler` });
    else autoscalers.set(target, autoscaler);
  }
  return { autoscalers, unused };
}

/** Returns the name in ARC if it is a valid and unused set name, otherwise a similar one. */
function setName(name: string, taken: Set<string>, draft: SetDraft): string {
  const clean = name.replaceAll(/[^A-Za-z0-9_.-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  const cut = (length: number): string => clean.slice(0, length).replace(/[^A-Za-z0-9]+$/, '');
  let chosen = cut(MAX_SET_NAME) || 'set';
  for (let count = 2; taken.has(chosen); count++)
    chosen = `${cut(MAX_SET_NAME - String(count).length - 1)}-${count}`;
  taken.add(chosen);
  if (chosen !== name)
    draft.note(
      'name',
      `${quoted(name)} is too long for a set, has other characters, or is taken (at most ${MAX_SET_NAME}: letters, digits, ".", "_" and "-")`,
      'set',
      'name',
    );
  return chosen;
}

/** Validates a set with the parser of the worker. */
function validated(from: ArcObject, draft: SetDraft): MigratedSet | undefined {
  const input = draft.input();
  // Only the worker needs the hash of the template.
  const parsed = parseRunnerSetInput(input, {
    hash: () => '',
    checkSchedule: scheduleError,
    policy: 'elsewhere',
  });
  if (!parsed.ok) {
    for (const { field, message } of parsed.errors) draft.addError(draft.sourceOf(field), message);
    return undefined;
  }
  const { pod, warnings } = parsed.spec.runner;
  const needs = podNeeds(pod);
  if (needs !== undefined)
    return {
      from,
      input: input as unknown as RunnerSetInput,
      notes: draft.notes,
      warnings,
      ...needs,
    };
  draft.addError(
    'template.pod of the set',
    "does not match Kubernetes' PodSpec; check for fields of the wrong type (list, object or string)",
  );
  return undefined;
}
