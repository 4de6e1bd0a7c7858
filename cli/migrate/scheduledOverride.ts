/** Converts a scheduled override, which recurs in a calendar, to a cron schedule. Pure. */
import { formatDuration } from '../../core/domain/duration.ts';
import { getPath, toText } from './fieldRows.ts';
import { quoted, type Json, type SetDraft } from './setDraft.ts';

/** Start of an override in its own time zone. */
interface Start {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
}

/** Cron expression of each frequency in ARC. */
export const CRON_OF_FREQUENCY: Readonly<Record<string, (start: Start) => string>> = {
  Daily: ({ minute, hour }) => `${minute} ${hour} * * *`,
  Weekly: ({ minute, hour, weekday }) => `${minute} ${hour} * * ${weekday}`,
  Monthly: ({ minute, hour, day }) => `${minute} ${hour} ${day} * *`,
  Yearly: ({ minute, hour, day, month }) => `${minute} ${hour} ${day} ${month} *`,
};

/**
 * Converts an override.
 * @param now - current time (ms since the epoch)
 * @returns the schedule. Empty if there is none, with a note that gives the reason
 */
export function convertOverride(
  override: Json,
  field: string,
  draft: SetDraft,
  now: number,
): Json[] {
  const leftOut = (text: string): Json[] => {
    draft.note(field, `left out: ${text}`, 'set', 'schedules');
    return [];
  };
  const startTime = toText(override['startTime']);
  const [start, end] = [Date.parse(startTime), Date.parse(toText(override['endTime']))];
  if (Number.isNaN(start) || Number.isNaN(end) || end <= start) {
    draft.addError(
      field,
      'must have a startTime and a later endTime, such as 2026-03-01T09:00:00+01:00',
    );
    return [];
  }
  const { minReplicas } = override;
  if (minReplicas === undefined || minReplicas === null)
    return leftOut('it has no minReplicas, so it changes nothing');
  const given = getPath(override, 'recurrenceRule', 'frequency') ?? '';
  const frequency = typeof given === 'string' ? given : 'none';
  if (frequency === '')
    return leftOut(
      end <= now
        ? 'it is over'
        : 'it happens once, and a schedule recurs: "holdfast set scale" when it is time',
    );
  const until = getPath(override, 'recurrenceRule', 'untilTime');
  const last = typeof until === 'string' ? Date.parse(until) : Number.NaN;
  if (last <= now) return leftOut('it has recurred for the last time');
  const cronOf = Object.hasOwn(CRON_OF_FREQUENCY, frequency)
    ? CRON_OF_FREQUENCY[frequency]
    : undefined;
  if (cronOf === undefined) {
    draft.addError(`${field}.recurrenceRule.frequency`, 'must be Daily, Weekly, Monthly or Yearly');
    return [];
  }
  const offset = offsetOf(startTime);
  if (offset === undefined && /^(Monthly|Yearly)$/.test(frequency))
    return leftOut(
      'its offset is not a whole number of hours; write cron and timeZone (Asia/Kolkata) yourself',
    );
  if (!Number.isNaN(last))
    draft.note(
      `${field}.recurrenceRule.untilTime`,
      `${quoted(until)}: a schedule has no end. Remove it then`,
      'set',
      'schedules',
    );
  return [
    {
      cron: cronOf(startAt(start + (offset ?? 0) * 60_000)),
      timeZone: zoneOf(offset ?? 0),
      duration: formatDuration(end - start),
      minIdle: minReplicas,
      max: draft.parts.set['max'],
    },
  ];
}

/**
 * Returns the offset in minutes east of UTC.
 * @returns `undefined` if it is not a whole number of hours: no time zone keeps that, so such a
 * time is written in UTC if that means the same
 */
function offsetOf(time: string): number | undefined {
  const [, sign, hours, minutes] = /T.*([+-])(\d{2}):?(\d{2})$/.exec(time) ?? [];
  if (sign === undefined) return 0;
  return minutes === '00' ? Number(`${sign}${Number(hours) * 60}`) : undefined;
}

/**
 * Returns the time zone with this offset. Its name has the sign of POSIX: Etc/GMT-9 is nine hours
 * east. https://data.iana.org/time-zones/tzdb/etcetera
 */
const zoneOf = (offset: number): string =>
  offset === 0 ? 'UTC' : `Etc/GMT${offset > 0 ? '-' : '+'}${Math.abs(offset) / 60}`;

function startAt(ms: number): Start {
  const time = new Date(ms);
  return {
    minute: time.getUTCMinutes(),
    hour: time.getUTCHours(),
    day: time.getUTCDate(),
    month: time.getUTCMonth() + 1,
    weekday: time.getUTCDay(),
  };
}
