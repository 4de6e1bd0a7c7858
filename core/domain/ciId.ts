/** IDs that CI servers give to runners and jobs. They are text: not every server counts. Pure. */

/** 1 to 100 characters without white space and "/". */
export const CI_ID_PATTERN = /^[^\s/]{1,100}$/;

/** Whether the text can be an ID of a CI server: 1 to 100 characters without white space and "/". */
export function isCiId(value: unknown): value is string {
  return typeof value === 'string' && CI_ID_PATTERN.test(value);
}

/** Reads an ID in a signal, which anybody may have sent. A whole number is taken as its digits. @returns `undefined` for anything else */
export function parseCiId(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return String(value);
  return isCiId(value) ? value : undefined;
}
