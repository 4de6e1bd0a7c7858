/** Text for terminals: what comes from outside is made harmless before it is printed. */

// Cc: C0 and C1 controls (ESC included). The others turn the direction of text, or are invisible: names made to look like other names.
const UNPRINTABLE = /[\p{Cc}\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]+/gu;

/** Without control characters and invisible or direction-changing ones; line breaks and tabs become spaces. */
export function clean(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(UNPRINTABLE, '').trim();
}

/** {@link clean} for every string of a value, keys included; what a number or a boolean is stays as it is. */
export function cleanDeep(value: unknown): unknown {
  if (typeof value === 'string') return clean(value);
  if (Array.isArray(value)) return value.map(cleanDeep);
  if (value instanceof Date) return value.toISOString();
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [clean(key), cleanDeep(inner)]));
  }
  return value;
}

/** `s` shortened to `width` characters, the last one an ellipsis. */
export function shorten(s: string, width: number): string {
  const characters = Array.from(s);
  return characters.length <= width ? s : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

/** Age for a table: the two largest units at most. `42s`, `7m`, `3h12m`, `5d4h`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor((seconds % 86_400) / 3_600), Math.floor((seconds % 3_600) / 60)];
  if (days > 0) return hours > 0 ? `${days}d${hours}h` : `${days}d`;
  if (hours > 0) return minutes > 0 ? `${hours}h${minutes}m` : `${hours}h`;
  return minutes > 0 ? `${minutes}m` : `${seconds}s`;
}
