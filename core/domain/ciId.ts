/** IDs that CI servers give to runners and jobs. They are text: not every server counts. Pure. */

/**
 * 1 to 100 characters. What has a meaning in a URL is left out, and so are dots alone: an ID becomes a part of a path.
 */
export const CI_ID_PATTERN = /^(?!\.+$)[^\s/\\?#%\p{Cc}]{1,100}$/u;

/** Whether the text can be an ID of a CI server: 1 to 100 characters without white space, "/", "\", "?", "#" and "%", and not only dots. */
export function isCiId(value: unknown): value is string {
  return typeof value === 'string' && CI_ID_PATTERN.test(value);
}

/** Reads an ID in a signal, which anybody may have sent. A whole number is taken as its digits. @returns `undefined` for anything else */
export function parseCiId(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return String(value);
  return isCiId(value) ? value : undefined;
}
