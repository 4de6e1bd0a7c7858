/** Durations at the edge are strings such as `30s`, `10m`, `1h30m` (Go's notation, as Kubernetes and Prow print them); inside, ms. */
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

/** Longer is a mistake, and a date that far away would not be one (a JavaScript date ends in the year 275760). */
const MAX_MS = 10 * 365 * 24 * 3_600_000;

/** Milliseconds of a duration string (`0` needs no unit), or `undefined` when it is none or longer than ten years. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (!DURATION.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART))
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
  return total <= MAX_MS ? Math.round(total) : undefined;
}

/** `14400000` → `4h0m0s`, `90000` → `1m30s`, `15000` → `15s`, `250` → `250ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  if (h > 0) return `${h}h${m}m${s}s`;
  return m > 0 ? `${m}m${s}s` : `${s}s`;
}

/** Fields that may each hold a duration string: those of a table of defaults. `undefined` in the table: none by default. */
export type Durations<Defaults> = { -readonly [Field in keyof Defaults]?: string };

/** The same durations in ms, under names that say so. */
export type Milliseconds<T> = OmitUndefined<{
  readonly [Field in keyof T & string as `${Field}Ms`]: undefined extends T[Field]
    ? number | undefined
    : number;
}>;

/** `{resync: '10m'}` → `{resyncMs: 600_000}`; what has no value is left out. @param durations - valid ones */
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
