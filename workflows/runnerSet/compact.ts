/**
 * Compact forms for continue-as-new: Temporal rejects more than 2 MiB. Times are differences, and
 * records end with their last field that is neither 0 nor `''`. Pure.
 */

/** Encodes a number, which may be absent (0), as the difference to another one. */
export function encodeNumber(base: number, value: number | undefined): number {
  if (value === undefined) return 0;
  return value >= base ? value - base + 1 : value - base;
}

/** Decodes a number of {@link encodeNumber}. */
export function decodeNumber(base: number, difference: number): number | undefined {
  if (difference === 0) return undefined;
  return difference > 0 ? base + difference - 1 : base + difference;
}

/** Returns a record without the fields at its end that are 0 or `''`. */
export function trimRecord<T extends readonly (string | number | undefined)[]>(record: T): T {
  const last = record.findLastIndex((field) => field !== 0 && field !== '');
  return record.slice(0, last + 1) as unknown as T;
}

/** Encodes a text that often begins with this prefix. */
export function encodeName(prefix: string, name: string | undefined): string {
  if (name === undefined) return '';
  const rest = name.slice(prefix.length);
  const isShort = name.startsWith(prefix) && rest !== '' && !rest.startsWith('/');
  return isShort ? rest : `/${name}`;
}

/** Decodes a text of {@link encodeName}. */
export function decodeName(prefix: string, text: string): string | undefined {
  if (text === '') return undefined;
  return text.startsWith('/') ? text.slice(1) : prefix + text;
}
