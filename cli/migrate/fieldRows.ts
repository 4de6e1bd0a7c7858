/** Tables of fields: a row for each field of an object of ARC, which says what becomes of it. */
import { isObject } from '../../core/domain/isObject.ts';
import type { Part, SetDraft } from './setDraft.ts';

/** @param field - its path in ARC's object, for notes and faults @param key - its name alone */
export type FieldRow = (value: unknown, draft: SetDraft, field: string, key: string) => void;
export type FieldRows = Readonly<Record<string, FieldRow>>;

/** The same field, in another place. Whether its value is one is for the set's validation. */
export const copyTo =
  (part: Part, key: string): FieldRow =>
  (value, draft) =>
    draft.put(part, key, value);

/** Has no counterpart: the note says what it meant and what to do instead. */
export const unsupported =
  (text: string, part: Part, key?: string): FieldRow =>
  (_value, draft, field) =>
    draft.note(field, text, part, key);

/** Needs no word: bookkeeping of ARC's, or read together with another field. */
export const ignored: FieldRow = () => undefined;

/** An object whose fields have rows of their own. */
export const nested =
  (rows: FieldRows, otherwise?: FieldRow): FieldRow =>
  (value, draft, field) =>
    convertFields(value, rows, field, draft, otherwise);

const unknown: FieldRow = (_value, draft, field) =>
  draft.note(
    field,
    'not known to this command: see what it meant, and whether the set needs it',
    'set',
  );

/**
 * What has no value says nothing.
 * @param at - the object's own path; empty: its fields are named by themselves
 * @param otherwise - the row of fields that are not in the table. Default: a note that they are not known
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
    (row ?? otherwise)(value, draft, at === '' ? key : `${at}.${key}`, key);
  }
}

/** A plain value as text; of anything else nothing: an object may be whatever it says it is. */
export const toText = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? `${value}`
      : '';

/** A field of an object that may have none, or be none. */
export const getPath = (source: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    source,
  );
