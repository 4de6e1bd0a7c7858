/**
 * Durations. In inputs and outputs they are strings such as `30s`, `10m`, `1h30m` (Go's notation,
 * as in Kubernetes and Prow), inside of the code they are numbers (ms).
 */
import { omitUndefined, type OmitUndefined } from './omitUndefined.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

/**
 * Maximum duration (ms). A longer one is a mistake, and a date that far away would be invalid (a
 * JavaScript date ends in the year 275760).
 */
const MAX_MS = 10 * 365 * 24 * 3_600_000;

/**
 * Parses a duration such as "1h30m" into milliseconds (`0` needs no unit). Returns `undefined` if
 * the text is invalid or longer than ten years.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (!DURATION.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART))
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
  return total <= MAX_MS ? Math.round(total) : undefined;
}

/**
 * Formats milliseconds: `14400000` → `4h0m0s`, `90000` → `1m30s`, `15000` → `15s`, `250` → `250ms`.
 */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  if (h > 0) return `${h}h${m}m${s}s`;
  return m > 0 ? `${m}m${s}s` : `${s}s`;
}

/**
 * Duration strings for the fields of a table of defaults. A field that is `undefined` in the table
 * has no default.
 */
export type Durations<Defaults> = { -readonly [Field in keyof Defaults]?: string };

/** The same durations in milliseconds, under names that end in `Ms`. */
export type Milliseconds<T> = OmitUndefined<{
  readonly [Field in keyof T & string as `${Field}Ms`]: undefined extends T[Field]
    ? number | undefined
    : number;
}>;

/**
 * Converts durations: `{resync: '10m'}` → `{resyncMs: 600_000}`. Fields without a value are left
 * out.
 * @param durations - valid durations
 */
export function toMilliseconds<T extends Readonly<Record<string, string | undefined>>>(
  durations: T,
): Milliseconds<T> {
  return Object.fromEntries(
    Object.entries<string>(omitUndefined(durations)).map(([field, text]) => [
      `${field}Ms`,
      parseDuration(text) ?? Number.NaN,
    ]),
  ) as Milliseconds<T>;
}
