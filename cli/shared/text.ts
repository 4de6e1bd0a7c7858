/** Makes external values safe for terminals. */
import { stripControlCharacters } from '../../core/domain/displayText.ts';

/**
 * Applies {@link stripControlCharacters} to every string of a value, keys included. Other values
 * stay unchanged.
 */
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

/** Formats an age for a table, with at most its two largest units: `42s`, `7m`, `3h12m`, `5d4h`. */
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
