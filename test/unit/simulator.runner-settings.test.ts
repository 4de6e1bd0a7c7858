import { describe, expect, test } from '@jest/globals';
import { encodeJitConfig } from '../../tools/simulator/jit-config.ts';
import { Registrations } from '../../tools/simulator/registrations.ts';
import { readSettings } from '../../tools/simulator/runner/settings.ts';

const token = { RUNNER_TOKEN: 'T', RUNNER_URL: 'http://host:1/acme' };

describe('with a JIT config', () => {
  const registration = new Registrations().add({ name: 'one', scope: 'repos/acme/web', groupId: 1, labels: ['x'], ephemeral: true, jit: true });
  if (!registration) throw new Error('not added');
  const config = encodeJitConfig(registration, 'http://host:1', '_work');

  test('it says who the runner is and where it belongs', () => {
    const settings = readSettings({ ACTIONS_RUNNER_INPUT_JITCONFIG: config }, []);
    expect(settings).toMatchObject({ mode: 'registered', name: 'one', serverUrl: 'http://host:1', credential: registration.credential, ephemeral: true });
    expect(readSettings({}, ['--jitconfig', config])).toEqual(settings);
  });

  test('a spoilt one is refused without being shown', () => {
    expect(() => readSettings({ ACTIONS_RUNNER_INPUT_JITCONFIG: 'c2VjcmV0' }, [])).toThrow(/^The JIT config cannot be read: it is not base64 of JSON\.$/);
  });
});

test.each<[Record<string, string>, string]>([
  [{}, 'orgs/acme'],
  [{ RUNNER_URL: 'http://host:1/acme/web' }, 'repos/acme/web'],
  [{ RUNNER_URL: 'http://host:1/enterprises/big' }, 'enterprises/big'],
  [{ RUNNER_URL: 'http://host:1', RUNNER_SCOPE: 'repos/acme/web' }, 'repos/acme/web'],
  [{ RUNNER_URL: 'http://host:1', RUNNER_SCOPE: '/orgs/acme' }, 'orgs/acme'],
])('%j registers in %s', (env, scope) => {
  expect(readSettings({ ...token, ...env }, [])).toMatchObject({ mode: 'token', scope, serverUrl: 'http://host:1' });
});

test('labels, group, kind and flags', () => {
  const env = { ...token, RUNNER_NAME: 'r', RUNNER_LABELS: 'a, b,,c', RUNNER_GROUP: 'g', RUNNER_EPHEMERAL: 'true', ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1' };
  expect(readSettings(env, [])).toMatchObject({ name: 'r', labels: ['a', 'b', 'c'], group: 'g', ephemeral: true, deprecatedExitCode: true });
  expect(readSettings(token, [])).toMatchObject({ labels: [], ephemeral: false, deprecatedExitCode: false, stopTimes: { interruptMs: 7500, terminateMs: 2500 } });
});

test.each([{}, { RUNNER_TOKEN: 'T' }, { RUNNER_URL: 'http://host' }])('%j is not enough', (env) => {
  expect(() => readSettings(env, [])).toThrow('Not configured');
});
test('an address without a scope is refused', () => {
  expect(() => readSettings({ ...token, RUNNER_URL: 'http://host:1/' }, [])).toThrow('No scope');
});
