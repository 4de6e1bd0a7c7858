/** Values for terminals: what comes from outside is made harmless before it is printed. */
import { stripControlCharacters } from '../../core/domain/displayText.ts';

/** {@link stripControlCharacters} for every string of a value, keys included; what a number or a boolean is stays as it is. */
export function cleanDeep(value: unknown): unknown {
  if (typeof value === 'string') return stripControlCharacters(value);
  if (Array.isArray(value)) return value.map(cleanDeep);
  if (value instanceof Date) return value.toISOString();
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [stripControlCharacters(key), cleanDeep(inner)]),
    );
  }
  return value;
}

/** Age for a table: the two largest units at most. `42s`, `7m`, `3h12m`, `5d4h`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor((seconds % 86_400) / 3_600),
    Math.floor((seconds % 3_600) / 60),
  ];
  if (days > 0) return hours > 0 ? `${days}d${hours}h` : `${days}d`;
  if (hours > 0) return minutes > 0 ? `${hours}h${minutes}m` : `${hours}h`;
  return minutes > 0 ? `${minutes}m` : `${seconds}s`;
}
