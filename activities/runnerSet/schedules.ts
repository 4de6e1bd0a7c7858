/** Determines the active schedule of a set from cron expressions in time zones. */
import { Cron } from 'croner';
import type { SetScheduleSpec } from '../../core/input/runnerSet.ts';
import type { ActiveSchedule } from '../../core/activities/index.ts';

/**
 * Maximum number of overlapping periods that are merged. After them, the schedule is evaluated
 * again.
 */
const MAX_OVERLAPS = 100;

/**
 * Returns why a cron expression or a time zone is invalid.
 * @returns `undefined` if both are valid
 */
export function scheduleError({
  cron,
  timeZone,
}: {
  readonly cron: string;
  readonly timeZone: string;
}): string | undefined {
  try {
    const pattern = read(cron, 'UTC');
    if (pattern.nextRun() === null) return `"${cron}" never comes true`;
  } catch (error) {
    return `"${cron}" is not a cron expression of five fields: ${error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)}`;
  }
  try {
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    return `"${timeZone}" is not a time zone; write for example "Europe/Berlin"`;
  }
  return undefined;
}

/**
 * Returns the first schedule that is active now, and the time at which that may change (ms since
 * the epoch).
 */
export function activeSchedule(
  schedules: readonly Pick<SetScheduleSpec, 'cron' | 'timeZone' | 'durationMs'>[],
  nowMs: number,
): ActiveSchedule {
  let until = Number.POSITIVE_INFINITY;
  for (const [index, { cron, timeZone, durationMs }] of schedules.entries()) {
    const pattern = read(cron, timeZone);
    const start = pattern.nextRun(new Date(nowMs - durationMs))?.getTime();
    if (start === undefined) continue;
    if (start <= nowMs) return { index, until: Math.min(until, endOf(pattern, start, durationMs)) };
    until = Math.min(until, start);
  }
  return Number.isFinite(until) ? { until } : {};
}

function endOf(pattern: Cron, start: number, durationMs: number): number {
  let last = start;
  for (let overlaps = 0; overlaps < MAX_OVERLAPS; overlaps++) {
    const next = pattern.nextRun(new Date(last))?.getTime();
    if (next === undefined || next > last + durationMs) break;
    last = next;
  }
  return last + durationMs;
}

/**
 * Parses a cron expression. The job is paused, because it only computes times and never runs.
 * @throws Error if the expression is invalid. A date is rejected too: croner would accept it as a
 * single run
 */
function read(cron: string, timeZone: string): Cron {
  if (cron.includes(':')) throw new TypeError('write for example "0 8 * * 1-5"');
  return new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });
}
