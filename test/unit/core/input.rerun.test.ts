import { expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { parseRerunInput } from '../../../core/input/rerun.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';

const rerun = {
  organization: 'acme',
  runnerName: 'linux-0123456789',
  cause: 'evicted',
  perRun: 1,
  perDay: 20,
};

test('a rerun with all its fields', () => {
  const job = { id: '42', repository: 'acme/web' };
  const stoppedAt = '2026-03-01T12:00:00Z';
  const more = { set: 'linux', job, stoppedAt, forceCancelAfter: '1m' };
  expect(parseRerunInput({ ...rerun, ...more })).toEqual({
    ok: true,
    spec: {
      scope: { kind: 'organization', name: 'acme' },
      credential: 'default',
      runnerName: 'linux-0123456789',
      cause: 'evicted',
      perRun: 1,
      perDay: 20,
      set: 'linux',
      job,
      stoppedAtMs: Date.parse(stoppedAt),
      forceCancelAfterMs: 60_000,
    },
  });
});

test.each([
  [{ job: { id: '42', repository: 'other/web' } }, 'job.repository', 'denied'],
  [{ job: { id: '../42', repository: 'acme/web' } }, 'job.id', 'invalid'],
  [{ runnerName: 'a/b' }, 'runnerName', 'invalid'],
  [{ cause: 'bored' }, 'cause', 'invalid'],
  [{ perRun: 0 }, 'perRun', 'out_of_range'],
  [{ perDay: 1_001 }, 'perDay', 'out_of_range'],
  [{ stoppedAt: 'soon' }, 'stoppedAt', 'invalid'],
  [{ stoppedAt: '1969-12-31T23:59:59Z' }, 'stoppedAt', 'invalid'],
  [{ forceCancelAfter: 'soon' }, 'forceCancelAfter', 'invalid'],
  [{ forceCancelAfter: '11m' }, 'forceCancelAfter', 'invalid'],
  [{ organization: undefined }, 'organization', 'required'],
  [{ force: true }, 'force', 'unknown_field'],
])('%j is rejected at %s', (more, field, code) => {
  const parsed = parseRerunInput(JSON.parse(JSON.stringify({ ...rerun, ...more })));
  expect(parsed).toMatchObject({ ok: false, errors: [{ field, code }] });
});

const policyOf = (input: RunnerInput) => {
  const parsed = parseRunnerInput(input);
  return parsed.ok ? parsed.spec.rerun : parsed.errors;
};

test.each([
  ['absent', undefined, undefined],
  ['off', { onLoss: false, perRun: 3 }, undefined],
  ['on', { onLoss: true }, { perRun: 1, perDay: 20 }],
  [
    'on, with an early end',
    { onLoss: true, forceCancelAfter: '1m' },
    { perRun: 1, perDay: 20, forceCancelAfter: '1m' },
  ],
  ['on, with limits', { onLoss: true, perRun: 3, perDay: 5 }, { perRun: 3, perDay: 5 }],
])('the policy of a runner, %s', (_what, policy, expected) => {
  expect(policyOf({ organization: 'acme', ...(policy && { rerun: policy }) })).toEqual(expected);
});

test('a plain command has no job to rerun', () => {
  expect(policyOf({ ciServer: 'none', command: ['true'], rerun: { onLoss: true } })).toMatchObject([
    { field: 'rerun', code: 'not_applicable' },
  ]);
});
