/**
 * IDs of runners and jobs at CI servers. They are strings, because not every server uses numbers.
 * Pure.
 */

/**
 * Pattern of an ID: 1 to 100 characters. Characters with a meaning in a URL are excluded, and so
 * are dots alone, because an ID becomes part of a path.
 */
export const CI_ID_PATTERN = /^(?!\.+$)[^\s/\\?#%\p{Cc}]{1,100}$/u;

/**
 * Whether the text can be an ID of a CI server: 1 to 100 characters without white space, "/", "\",
 * "?", "#" and "%", and not only dots.
 */
export function isCiId(value: unknown): value is string {
  return typeof value === 'string' && CI_ID_PATTERN.test(value);
}

/**
 * Parses an ID in a signal, which anyone may have sent. An integer is converted to a string.
 * @returns `undefined` for any other value
 */
export function parseCiId(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return String(value);
  return isCiId(value) ? value : undefined;
}
