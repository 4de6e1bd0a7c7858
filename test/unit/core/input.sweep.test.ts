import { expect, test } from '@jest/globals';
import { parseSweepInput } from '../../../core/input/sweep.ts';

test('an empty input is valid', () => {
  expect([parseSweepInput(), parseSweepInput(null), parseSweepInput({})]).toEqual(
    Array.from({ length: 3 }, () => expect.objectContaining({ ok: true })),
  );
});

test('all fields', () => {
  const input = {
    dryRun: true,
    force: true,
    minAge: '0s',
    maxPodAge: '1h',
    maxRunnerAge: '2d',
    listMaxAge: '5s',
    unresponsiveAfter: '10m',
    terminateAfter: '12h',
    takeOver: '9d5f7c1e-0000-4000-8000-000000000000',
    scopes: [{ organization: 'acme' }, { repository: 'acme/app', credential: 'second' }],
  };
  expect(parseSweepInput(input)).toEqual({
    ok: true,
    spec: {
      dryRun: true, force: true, minAgeMs: 0, maxPodAgeMs: 3_600_000, maxRunnerAgeMs: 172_800_000, listMaxAgeMs: 5_000, unresponsiveAfterMs: 600_000, terminateAfterMs: 43_200_000, takeOver: '9d5f7c1e-0000-4000-8000-000000000000',
      scopes: [{ scope: { kind: 'organization', name: 'acme' }, credential: 'default' }, { scope: { kind: 'repository', name: 'acme/app' }, credential: 'second' }],
    },
  }); // prettier-ignore
});

test.each<[input: object, field: string]>([
  [{ minAge: 'soon' }, 'minAge'],
  [{ dryrun: true }, 'dryrun'],
  [{ force: 'yes' }, 'force'],
  [{ takeOver: 'other namespace' }, 'takeOver'],
  [{ scopes: [{}] }, 'scopes.0.organization'],
  [{ scopes: [{ organization: 'a', enterprise: 'b' }] }, 'scopes.0.organization, enterprise'],
  [{ scopes: [{ repository: 'a' }] }, 'scopes.0.repository'],
])('%j is rejected because of %s', (input, field) => {
  expect(parseSweepInput(input)).toMatchObject({ ok: false, errors: [{ field }] });
});
