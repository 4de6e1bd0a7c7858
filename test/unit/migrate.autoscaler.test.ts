import { expect, test } from '@jest/globals';
import { autoscalerRows } from '../../cli/migrate/autoscalerRows.ts';
import { CRON_OF_FREQUENCY } from '../../cli/migrate/scheduledOverride.ts';
import {
  autoscaler,
  convert,
  deployment,
  describeRows,
  NOW,
  notesOf,
  OVERRIDE,
  SAME,
  type Fields,
} from '../support/migratedSets.ts';

const schedule = (fields: object): object => ({
  schedules: [{ duration: '6h30m0s', minIdle: 4, max: 9, ...fields }],
});

describeRows(
  'a HorizontalRunnerAutoscaler',
  autoscalerRows(NOW),
  [
    ['scaleTargetRef', { name: 'linux' }, { minIdle: 0, max: 9 }],
    ['minReplicas', 0, { minIdle: 0 }],
    ['minReplicas', 2, { minIdle: 2 }, /counted busy runners, too/],
    ['maxReplicas', 4, { max: 4 }],
    ['scaleDownDelaySecondsAfterScaleOut', 300, { scaleDownDelay: '300s' }],
    ['metrics', [{ type: 'PercentageRunnersBusy' }], SAME, /GitHub's webhook announces the jobs/],
    [
      'scaleUpTriggers',
      [{ githubEvent: { workflowJob: {} } }],
      SAME,
      /GitHub's webhook announces the jobs/,
    ],
    ['scaleUpTriggers', [{ githubEvent: { push: {} } }], SAME, /other events than workflowJob/],
    ['capacityReservations', [{ replicas: 1 }], SAME],
    [
      'githubAPICredentialsFrom',
      { secretRef: { name: 'org2' } },
      { template: { credential: 'org2' } },
    ],
    [
      'scheduledOverrides',
      [{ ...OVERRIDE, recurrenceRule: { frequency: 'Daily' } }],
      schedule({ cron: '0 0 * * *', timeZone: 'Etc/GMT-9' }),
    ],
    [
      'scheduledOverrides',
      [{ ...OVERRIDE, recurrenceRule: { frequency: 'Weekly' } }],
      schedule({ cron: '0 0 * * 0', timeZone: 'Etc/GMT-9' }),
    ],
    [
      'scheduledOverrides',
      [{ ...OVERRIDE, recurrenceRule: { frequency: 'Monthly' } }],
      schedule({ cron: '0 0 1 * *', timeZone: 'Etc/GMT-9' }),
    ],
    [
      'scheduledOverrides',
      [
        {
          ...OVERRIDE,
          startTime: '2026-02-01T00:00:00Z',
          endTime: '2026-02-01T06:30:00Z',
          recurrenceRule: { frequency: 'Yearly' },
        },
      ],
      schedule({ cron: '0 0 1 2 *', timeZone: 'UTC' }),
    ],
    [
      'scheduledOverrides',
      [
        {
          ...OVERRIDE,
          startTime: '2026-02-01T00:00:00+05:30',
          endTime: '2026-02-01T06:30:00+05:30',
          recurrenceRule: { frequency: 'Daily' },
        },
      ],
      schedule({ cron: '30 18 * * *', timeZone: 'UTC' }),
    ],
  ],
  (field, value) => [deployment({}, { replicas: 7 }), autoscaler({ [field]: value })],
);

test('a set with an autoscaler has no fixed number of runners', () => {
  expect(convert(deployment({}, { replicas: 7 }), autoscaler({})).input).toEqual({
    name: 'linux',
    minIdle: 0,
    max: 9,
    template: { organization: 'acme', labels: ['self-hosted'] },
  });
});

test.each<
  [deployment: string | undefined, autoscaler: string | undefined, max: number | undefined]
>([
  ['arc', undefined, 9],
  [undefined, 'arc', 9],
  ['arc', 'other', undefined],
])('namespaces %s and %s', (one, other, max) => {
  const inNamespace = (object: Fields, namespace: string | undefined): Fields => ({
    ...object,
    metadata: { name: 'linux', ...(namespace === undefined ? {} : { namespace }) },
  });
  const { input } = convert(inNamespace(deployment({}), one), inNamespace(autoscaler({}), other));
  expect(input.max).toBe(max);
});

test('a recurrence of each frequency has a case', () => {
  expect(Object.keys(CRON_OF_FREQUENCY)).toEqual(['Daily', 'Weekly', 'Monthly', 'Yearly']);
});

test.each<[string, Fields, RegExp]>([
  [
    'without minReplicas',
    { minReplicas: undefined, recurrenceRule: { frequency: 'Daily' } },
    /changes nothing/,
  ],
  ['in the past', {}, /it is over/],
  ['without a recurrence', { endTime: '2027-01-01T00:00:00Z' }, /a schedule recurs/],
  [
    'whose recurrence has ended',
    { recurrenceRule: { frequency: 'Daily', untilTime: '2026-02-20T00:00:00Z' } },
    /for the last time/,
  ],
  [
    'of a month, half an hour off',
    { startTime: '2026-02-01T00:00:00+05:30', recurrenceRule: { frequency: 'Monthly' } },
    /not a whole number of hours/,
  ],
])('an override %s is left out', (_title, fields, note) => {
  const set = convert(
    deployment({}),
    autoscaler({ scheduledOverrides: [{ ...OVERRIDE, ...fields }] }),
  );
  expect(set.input.schedules).toBeUndefined();
  expect(notesOf(set, 'scheduledOverrides[0]')).toEqual([expect.stringMatching(note)]);
});

test('an override that will end causes a note', () => {
  const set = convert(
    deployment({}),
    autoscaler({
      scheduledOverrides: [
        { ...OVERRIDE, recurrenceRule: { frequency: 'Daily', untilTime: '2027-01-01T00:00:00Z' } },
      ],
    }),
  );
  expect(set.input.schedules).toHaveLength(1);
  expect(notesOf(set, 'untilTime')).toEqual([
    expect.stringMatching(/"2027-01-01T00:00:00Z": a schedule has no end/),
  ]);
});
