import { parseDuration as durationMs } from '../../core/domain/duration.ts';

/**
 * Parses a duration in the format of the rest of Holdfast: `4h`, `30m`, `1h30m`, `1.5s`, `500ms`,
 * `0`.
 * @returns whole milliseconds
 * @throws RangeError if the text is not a duration
 */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined)
    throw new RangeError(`"${text}" is not a duration such as 30s, 10m or 1h30m`);
  return ms;
}

/**
 * Formats a duration as Go does (`4h0m0s`, `30m0s`, `15s`, `1.5s`, `100ms`, `0s`), because tools
 * that read Prow's log lines expect it.
 */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
