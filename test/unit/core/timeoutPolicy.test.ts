import { expect, test } from '@jest/globals';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import {
  timeoutsFor,
  type ScopeTimeouts,
  type TimeoutPolicy,
} from '../../../core/input/timeoutPolicy.ts';
import type { Scope } from '../../../core/domain/ciServer.ts';

const POLICY: TimeoutPolicy = {
  default: { jobTimeout: '6h', podPending: '20m', jobTimeoutCap: '12h' },
  scopes: {
    Acme: { jobTimeout: '4h', signalTimeout: '30s' },
    'acme/slow': { jobTimeout: '30h', jobTimeoutCap: '72h' },
    'enterprises/big': { registration: '3m' },
  },
};
const HOUR = 3_600_000;

test.each<[string, Scope | undefined, ScopeTimeouts]>([
  ['no scope', undefined, { jobTimeout: '6h', podPending: '20m', jobTimeoutCap: '12h' }],
  [
    'an organization, in another case',
    { kind: 'organization', name: 'ACME' },
    { jobTimeout: '4h', podPending: '20m', jobTimeoutCap: '12h', signalTimeout: '30s' },
  ],
  [
    'a repository: its own timeouts before those of its owner',
    { kind: 'repository', name: 'acme/slow' },
    { jobTimeout: '30h', podPending: '20m', jobTimeoutCap: '72h', signalTimeout: '30s' },
  ],
  [
    'another repository of the owner',
    { kind: 'repository', name: 'acme/web' },
    { jobTimeout: '4h', podPending: '20m', jobTimeoutCap: '12h', signalTimeout: '30s' },
  ],
  [
    'an enterprise',
    { kind: 'enterprise', name: 'big' },
    { jobTimeout: '6h', podPending: '20m', jobTimeoutCap: '12h', registration: '3m' },
  ],
  [
    'an organization with the name of an enterprise',
    { kind: 'organization', name: 'big' },
    { jobTimeout: '6h', podPending: '20m', jobTimeoutCap: '12h' },
  ],
])('%s', (_what, scope, expected) => {
  expect(timeoutsFor(POLICY, scope)).toEqual(expected);
});

test.each<[string, object, number]>([
  ['the scope’s default', { repository: 'acme/slow' }, 30 * HOUR],
  [
    'a runner’s own timeout takes precedence',
    { repository: 'acme/slow', timeouts: { jobTimeout: '1h' } },
    HOUR,
  ],
  [
    'up to the scope’s cap',
    { repository: 'acme/slow', timeouts: { jobTimeout: '72h' } },
    72 * HOUR,
  ],
  ['a plain command has the default', { ciServer: 'none', command: ['x'] }, 6 * HOUR],
])('job timeout: %s', (_what, input, expected) => {
  const parsed = parseRunnerInput(input, { policy: POLICY });
  expect(parsed).toMatchObject({ ok: true, spec: { timeouts: { jobTimeoutMs: expected } } });
});

test('a default over the cap is lowered to it', () => {
  expect(
    parseRunnerInput({ organization: 'a' }, { policy: { default: { jobTimeoutCap: '2h' } } }),
  ).toMatchObject({ spec: { timeouts: { jobTimeoutMs: 2 * HOUR } } });
});

test('the grace period of the scope is part of the pod’s', () => {
  expect(parseRunnerInput({ organization: 'acme' }, { policy: POLICY })).toMatchObject({
    spec: { pod: { terminationGracePeriodSeconds: 40, supervision: { signalTimeoutMs: 30_000 } } },
  });
});

test('a timeout over the cap of its scope is rejected', () => {
  expect(
    parseRunnerInput(
      { repository: 'acme/web', timeouts: { jobTimeout: '13h' } },
      { policy: POLICY },
    ),
  ).toMatchObject({
    ok: false,
    errors: [{ field: 'timeouts.jobTimeout', message: expect.stringContaining('cap of 12h') }],
  });
});
