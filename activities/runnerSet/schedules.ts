/** Which schedule of a set holds at a moment: cron expressions in time zones. */
import { Cron } from 'croner';
import type { SetScheduleSpec } from '../../core/input/runnerSet.ts';
import type { ActiveSchedule } from '../../core/activities/index.ts';

/** Starts that follow so closely that their times overlap are followed so far; then the schedule is asked again. */
const MAX_OVERLAPS = 100;

/** @returns what is wrong with an expression or a time zone; `undefined` when nothing is */
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

/** The first schedule that holds now, and when the answer may be another. */
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

/** Paused: nothing is ever run by it. @throws Error when it is none. A date would be one to croner, which comes true once. */
function read(cron: string, timeZone: string): Cron {
  if (cron.includes(':')) throw new TypeError('write for example "0 8 * * 1-5"');
  return new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });
}
