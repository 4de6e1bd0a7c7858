import { describe, expect, test } from '@jest/globals';
import { scheduleError, activeSchedule } from '../../../activities/runnerSet/schedules.ts';

const HOUR = 3_600_000;
const at = (iso: string): number => Date.parse(iso);
const office = { cron: '0 8 * * MON-FRI', timeZone: 'Europe/Berlin', durationMs: 10 * HOUR };
const night = { cron: '30 2 * * *', timeZone: 'Europe/Berlin', durationMs: 2 * HOUR };

describe('the active schedule', () => {
  test.each([
    ['before it begins', [office], '2026-11-23T06:59:59Z', { until: '2026-11-23T07:00:00Z' }],
    ['at its start', [office], '2026-11-23T07:00:00Z', { index: 0, until: '2026-11-23T17:00:00Z' }],
    ['during it', [office], '2026-11-23T12:34:56Z', { index: 0, until: '2026-11-23T17:00:00Z' }],
    ['at its end', [office], '2026-11-23T17:00:00Z', { until: '2026-11-24T07:00:00Z' }],
    ['at the weekend', [office], '2026-11-21T10:00:00Z', { until: '2026-11-23T07:00:00Z' }],
    [
      'in summer, in local time',
      [office],
      '2026-07-06T06:30:00Z',
      { index: 0, until: '2026-07-06T16:00:00Z' },
    ],
    [
      'the first active schedule takes precedence',
      [night, office],
      '2026-11-23T12:00:00Z',
      { index: 1, until: '2026-11-23T17:00:00Z' },
    ],
    [
      'the first of two schedules may start during the second',
      [{ ...office, cron: '0 14 * * *', durationMs: HOUR }, office],
      '2026-11-23T12:00:00Z',
      { index: 1, until: '2026-11-23T13:00:00Z' },
    ],
    [
      'a time that is skipped in spring',
      [night],
      '2026-03-29T01:30:00Z',
      { index: 0, until: '2026-03-29T03:00:00Z' },
    ],
    [
      'a time that occurs twice in autumn is one start',
      [night],
      '2026-10-25T01:45:00Z',
      { index: 0, until: '2026-10-25T02:30:00Z' },
    ],
    [
      'overlapping starts extend the schedule',
      [{ cron: '0 * * * *', timeZone: 'UTC', durationMs: 90 * 60_000 }],
      '2026-11-23T12:10:00Z',
      { index: 0, until: '2026-11-27T16:30:00Z' }, // after 100 starts it is evaluated again
    ],
    ['none', [], '2026-11-23T12:00:00Z', {}],
  ])('%s', (_what, schedules, now, expected: { index?: number; until?: string }) => {
    const { until, ...found } = activeSchedule(schedules, at(now));
    expect({
      ...found,
      ...(until !== undefined && { until: new Date(until).toISOString().replace('.000Z', 'Z') }),
    }).toEqual(expected);
  });

  test('overlapping schedules without an end are checked again later', () => {
    const always = { cron: '* * * * *', timeZone: 'UTC', durationMs: HOUR };
    const now = at('2026-11-23T12:00:30Z');
    const { index, until = 0 } = activeSchedule([always], now);
    expect(index).toBe(0);
    expect(until).toBeGreaterThan(now + HOUR / 2);
  });

  test.each([
    ['0 8 * * MON-FRI', 'Europe/Berlin', undefined],
    ['61 * * * *', 'UTC', /"61 \* \* \* \*" is not a cron expression of five fields: .*61/],
    ['0 0 8 * * 1', 'UTC', /five fields/],
    ['2050-01-01T08:00:00', 'UTC', /five fields: write for example/],
    ['+275760-09-13T00:00:00.000Z', 'UTC', /five fields: write for example/],
    ['0 0 30 2 *', 'UTC', /never comes true/],
    ['0 8 * * *', 'Europe/Nowhere', /"Europe\/Nowhere" is not a time zone/],
  ])('%s in %s', (cron, timeZone, fault) => {
    const faulty: unknown = expect.stringMatching(fault ?? '');
    expect(scheduleError({ cron, timeZone })).toEqual(fault === undefined ? undefined : faulty);
  });
});
