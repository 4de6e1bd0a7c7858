/**
 * Validates the documents of a file with the parser of the workflow, all of them before any is
 * applied.
 */
import type { Parsed } from '../../core/input/fields.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { CliError, type FieldError } from '../shared/exit.ts';
import type { SetDocument } from './setDocuments.ts';

/** Kind of the documents in a file. */
export interface DocumentKind<Admitted> {
  /** Name of the kind: `set`. */
  readonly what: string;
  /** Description of the expected fields: `the fields of a set: name, …`. */
  readonly fields: string;
  readonly parse: (value: Record<string, unknown>) => Parsed<Admitted>;
  /**
   * Returns the value that must be unique among the documents, or `undefined` if a document has
   * none.
   */
  readonly key: (value: Record<string, unknown>) => string | undefined;
}

/**
 * Validates all documents.
 * @param shown - name of the file, for messages
 * @throws CliError `invalid_input` with every error of every document
 */
export function validateDocuments<Admitted>(
  documents: readonly SetDocument[],
  shown: string,
  { what, fields, parse, key }: DocumentKind<Admitted>,
): Admitted[] {
  const admitted: Admitted[] = [];
  const faults: FieldError[] = [];
  const places = new Map<string, string>();
  let bad = 0;
  for (const document of documents) {
    const { value, label, lineOf } = document;
    if (!isObject(value)) {
      bad++;
      faults.push({
        field: `${label}, line ${lineOf('')}`,
        message: `must be an object with ${fields}`,
      });
      continue;
    }
    const parsed = parse(value);
    const errors: FieldError[] = [];
    if (parsed.ok) admitted.push(parsed.spec);
    else errors.push(...parsed.errors);
    errors.push(...duplicateErrors(document, key(value), places, what));
    if (errors.length > 0) bad++;
    faults.push(...errors.map(({ field, message }) => location(document, field, message)));
  }
  if (faults.length === 0) return admitted;
  throw new CliError(
    'invalid_input',
    `${documents.length === 1 ? `the ${what} in ${shown} is` : `${bad} of ${documents.length} ${what}s in ${shown} are`} invalid; nothing was applied`,
    { fields: faults },
  );
}

/**
 * Returns an error for a document whose name another document has. The two would overwrite each
 * other.
 */
function duplicateErrors(
  { label, lineOf }: SetDocument,
  key: string | undefined,
  places: Map<string, string>,
  what: string,
): FieldError[] {
  if (key === undefined) return [];
  const other = places.get(key);
  if (other === undefined)
    places.set(key, `${label.replace(/ \(.*/s, '')}, line ${lineOf('name')}`);
  return other === undefined
    ? []
    : [{ field: 'name', message: `is also the name of ${other}; give each ${what} its own name` }];
}

function location({ label, lineOf }: SetDocument, field: string, message: string): FieldError {
  // Some errors name several fields. The line is that of the first.
  const line = lineOf(field.split(', ')[0]?.replace(/:$/, '') ?? '');
  return { field: `${label}, line ${line}: ${field}`, message };
}
