/** Validates the documents of `holdfast set apply` with the workflow's own parser, all of them before anything is applied. */
import { scheduleFault } from '../../../activities/sets/schedules.ts';
import type { RunnerSetInput } from '../../../core/contract/index.ts';
import { parseRunnerSetInput, type SetSpec } from '../../../core/input/runnerSet.ts';
import { isObject } from '../../../core/isObject.ts';
import { CliError, type FieldError } from '../terminal/exit.ts';
import type { SetDocument } from './setDocuments.ts';

/** A document that is a set. */
export interface AdmittedDocument {
  readonly input: RunnerSetInput;
  readonly spec: SetSpec;
  /** What will not do what its author may expect. */
  readonly warnings: readonly string[];
}

/** @param shown - the file's name, for messages @throws CliError `invalid_input` with every error of every document */
export function admitSets(documents: readonly SetDocument[], shown: string): AdmittedDocument[] {
  const admitted: AdmittedDocument[] = [];
  const faults: FieldError[] = [];
  const places = new Map<string, string>();
  let bad = 0;
  for (const document of documents) {
    if (!isObject(document.value)) {
      bad++;
      faults.push({ field: `${document.label}, line ${document.lineOf('')}`, message: 'must be an object with the fields of a set: name, template, and replicas or minIdle and max' });
      continue;
    }
    const errors: FieldError[] = [];
    const input: unknown = document.value;
    // The template's hash is the worker's to make.
    const parsed = parseRunnerSetInput(input, { hash: () => '', checkSchedule: scheduleFault, policy: 'elsewhere' });
    if (parsed.ok) {
      const { runner, ...spec } = parsed.spec;
      admitted.push({ input: input as RunnerSetInput, spec, warnings: runner.warnings });
    } else errors.push(...parsed.errors);
    errors.push(...takenName(document, places));
    if (errors.length > 0) bad++;
    faults.push(...errors.map(({ field, message }) => at(document, field, message)));
  }
  if (faults.length === 0) return admitted;
  throw new CliError('invalid_input', `nothing was applied: ${documents.length === 1 ? `the set in ${shown} is` : `${bad} of ${documents.length} sets in ${shown} are`} invalid`, { fields: faults });
}

/** Two documents of one name would undo each other. */
function takenName(document: SetDocument, places: Map<string, string>): FieldError[] {
  const { value, label } = document;
  const name = isObject(value) ? value['name'] : undefined;
  if (typeof name !== 'string') return [];
  const other = places.get(name);
  if (other === undefined) places.set(name, `${label.replace(/ \(.*/s, '')}, line ${document.lineOf('name')}`);
  return other === undefined ? [] : [{ field: 'name', message: `is that of ${other} too: give each set a name of its own` }];
}

function at(document: SetDocument, field: string, message: string): FieldError {
  // Some errors name several fields; the first says where to look.
  const line = document.lineOf(field.split(', ')[0]?.replace(/:$/, '') ?? '');
  return { field: `${document.label}, line ${line}: ${field}`, message };
}
