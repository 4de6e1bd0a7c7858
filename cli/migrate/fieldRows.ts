/** Conversion tables: one row for each field of an ARC object. */
import { isObject } from '../../core/domain/isObject.ts';
import type { Part, SetDraft } from './setDraft.ts';

/**
 * Converts one field of an ARC object.
 * @param field - its path in the ARC object, for notes and errors
 * @param key - its name without the path
 */
export type FieldRow = (value: unknown, draft: SetDraft, field: string, key: string) => void;
/** Conversion of each field, by field name. */
export type FieldRows = Readonly<Record<string, FieldRow>>;

/**
 * Returns a row that copies the field to another path. The validation of the set checks its value.
 */
export const copyTo =
  (part: Part, key: string): FieldRow =>
  (value, draft) =>
    draft.put(part, key, value);

/** Returns a row that copies a list. Kubernetes treats an empty list like a missing one. */
export const copyListTo =
  (part: Part, key: string): FieldRow =>
  (value, draft) => {
    if (!Array.isArray(value) || value.length > 0) draft.put(part, key, value);
  };

/**
 * Returns a row for a field without a counterpart. Its note describes the field and the
 * replacement.
 */
export const unsupported =
  (text: string, part: Part, key?: string): FieldRow =>
  (_value, draft, field) =>
    draft.note(field, text, part, key);

/**
 * Row of a field that needs no conversion: internal state of ARC, or read together with another
 * field.
 */
export const ignored: FieldRow = () => undefined;

/** Returns a row for an object whose fields have rows. */
export const nested =
  (rows: FieldRows, otherwise?: FieldRow): FieldRow =>
  (value, draft, field) =>
    convertFields(value, rows, field, draft, otherwise);

const unknown: FieldRow = (_value, draft, field) =>
  draft.note(
    field,
    'not known to this command; check what it means, and whether the set needs it',
    'set',
  );

/**
 * Converts the fields of an object. Fields without a value are skipped.
 * @param at - path of the object; empty for top-level fields
 * @param otherwise - row for fields that are not in the table. @default a note that the field is
 * unknown
 */
export function convertFields(
  source: unknown,
  rows: FieldRows,
  at: string,
  draft: SetDraft,
  otherwise: FieldRow = unknown,
): void {
  if (!isObject(source)) return draft.addError(at, 'must be an object');
  for (const [key, value] of Object.entries(source)) {
    if (value === null || value === undefined || value === '') continue;
    const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
    const field = at === '' ? key : `${at}.${key}`;
    draft.source = field;
    (row ?? otherwise)(value, draft, field, key);
  }
  draft.source = undefined;
}

/** Returns a string, number or boolean as text, and an empty text for all other values. */
export const toText = (value: unknown): string =>
  ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : '';

/** Returns the value at a path of an object, or `undefined`. */
export const getPath = (source: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    source,
  );
