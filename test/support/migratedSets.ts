/**
 * Objects of ARC, and the sets that a migration converts them to; one test for each row of a table.
 */
import { describe, expect, test } from '@jest/globals';
import { convertArc, type MigratedSet } from '../../cli/migrate/convertArc.ts';

export type Fields = Record<string, unknown>;
export const NOW = Date.parse('2026-03-01T00:00:00Z');

export const scaleSet = (spec: Fields, annotations: Fields = {}): Fields => ({
  apiVersion: 'actions.github.com/v1alpha1',
  kind: 'AutoscalingRunnerSet',
  metadata: { name: 'linux', namespace: 'arc', annotations },
  spec: { githubConfigUrl: 'https://github.com/acme', maxRunners: 5, ...spec },
});
export const legacy = (kind: string, spec: Fields): Fields => ({
  apiVersion: 'actions.summerwind.dev/v1alpha1',
  kind,
  metadata: { name: 'linux', namespace: 'arc' },
  spec,
});
/** Without the Docker daemon, which every runner has by default. */
export const deployment = (spec: Fields, outer: Fields = {}): Fields =>
  legacy('RunnerDeployment', {
    ...outer,
    template: { spec: { organization: 'acme', dockerEnabled: false, ...spec } },
  });
export const autoscaler = (spec: Fields): Fields =>
  legacy('HorizontalRunnerAutoscaler', {
    scaleTargetRef: { kind: 'RunnerDeployment', name: 'linux' },
    minReplicas: 0,
    maxReplicas: 9,
    ...spec,
  });
/** A time in the morning, nine hours east. */
export const OVERRIDE = {
  startTime: '2026-02-01T00:00:00+09:00',
  endTime: '2026-02-01T06:30:00+09:00',
  minReplicas: 4,
};

/** Returns the only set that the objects are converted to. */
export function convert(...values: readonly unknown[]): MigratedSet {
  const { sets, errors } = convertArc(
    values.map((value, index) => ({ source: `document ${index + 1}`, value })),
    { release: 'linux', now: NOW },
  );
  expect(errors).toEqual([]);
  expect(sets).toHaveLength(1);
  return sets[0] as MigratedSet;
}

/** Returns the notes about fields with this suffix. */
export const notesOf = ({ notes }: MigratedSet, field: string): string[] =>
  notes
    .filter((note) => note.field.endsWith(field))
    .map(({ text, needsDecision }) => `${needsDecision ? 'DECIDE ' : ''}${text}`);

/** Expected fields of a set. */
export const pod = (spec: object): object => ({ template: { pod: { spec } } });
export const runner = (fields: object): object =>
  pod({ containers: [{ name: 'runner', ...fields }] });
export const SAME = {};

/**
 * A field, its value, the expected fields of the set, and the expected part of its note, if any.
 */
export type RowCase = readonly [field: string, value: unknown, expected: object, note?: RegExp];

/**
 * Tests every row of a table.
 * @param make - creates objects with this field
 * @param elsewhere - fields with tests of their own
 */
export function describeRows(
  title: string,
  rows: object,
  cases: readonly RowCase[],
  make: (field: string, value: unknown) => unknown[],
  elsewhere: readonly string[] = [],
): void {
  describe(title, () => {
    test('each row has a case', () => {
      expect(
        Object.keys(rows).filter(
          (key) => !elsewhere.includes(key) && !cases.some(([field]) => field === key),
        ),
      ).toEqual([]);
    });
    // A rest parameter, because jest passes its callback in a parameter beyond the end of a row.
    test.each(cases)('%s: %j', (...[field, value, expected, note]: RowCase) => {
      const set = convert(...make(field, value));
      expect(set.input).toMatchObject(expected);
      const noted: unknown = expect.arrayContaining([expect.stringMatching(note ?? '')]);
      expect(notesOf(set, field)).toEqual(note === undefined ? [] : noted);
    });
  });
}
