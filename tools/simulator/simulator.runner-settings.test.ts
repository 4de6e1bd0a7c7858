import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { encodeJitConfig } from './jitConfig.ts';
import { Registrations } from './registrations.ts';
import { readConfiguration, readSettings } from './runner/settings.ts';

const token = { RUNNER_TOKEN: 'T', RUNNER_URL: 'http://host:1/acme' };

describe('with a JIT config', () => {
  const registration = new Registrations().add({
    name: 'one',
    scope: 'repos/acme/web',
    groupId: 1,
    labels: ['x'],
    ephemeral: true,
    jit: true,
  });
  if (!registration) throw new Error('not added');
  const config = encodeJitConfig(registration, 'http://host:1', '_work');

  test('it says who the runner is and where it belongs', () => {
    const settings = readSettings({ ACTIONS_RUNNER_INPUT_JITCONFIG: config }, []);
    expect(settings).toMatchObject({
      mode: 'registered',
      name: 'one',
      serverUrl: 'http://host:1',
      credential: registration.credential,
      ephemeral: true,
    });
    expect(readSettings({}, ['--jitconfig', config])).toEqual(settings);
  });

  test('a spoilt one is refused without being shown', () => {
    expect(() => readSettings({ ACTIONS_RUNNER_INPUT_JITCONFIG: 'c2VjcmV0' }, [])).toThrow(
      /^The JIT config cannot be read: it is not base64 of JSON\.$/,
    );
  });
});

test.each<[Record<string, string>, string]>([
  [{}, 'orgs/acme'],
  [{ RUNNER_URL: 'http://host:1/acme/web' }, 'repos/acme/web'],
  [{ RUNNER_URL: 'http://host:1/enterprises/big' }, 'enterprises/big'],
  [{ RUNNER_URL: 'http://host:1', RUNNER_SCOPE: 'repos/acme/web' }, 'repos/acme/web'],
  [{ RUNNER_URL: 'http://host:1', RUNNER_SCOPE: '/orgs/acme' }, 'orgs/acme'],
])('%j registers in %s', (env, scope) => {
  expect(readSettings({ ...token, ...env }, [])).toMatchObject({
    mode: 'token',
    scope,
    serverUrl: 'http://host:1',
  });
});

test('labels, group, kind and flags', () => {
  const env = {
    ...token,
    RUNNER_NAME: 'r',
    RUNNER_LABELS: 'a, b,,c',
    RUNNER_GROUP: 'g',
    RUNNER_EPHEMERAL: 'true',
    ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1',
  };
  expect(readSettings(env, [])).toMatchObject({
    name: 'r',
    labels: ['a', 'b', 'c'],
    group: 'g',
    ephemeral: true,
    deprecatedExitCode: true,
  });
  expect(readSettings(token, [])).toMatchObject({
    labels: [],
    ephemeral: false,
    deprecatedExitCode: false,
    stopTimes: { interruptMs: 7500, terminateMs: 2500 },
  });
});

test.each([{}, { RUNNER_TOKEN: 'T' }, { RUNNER_URL: 'http://host' }])('%j is not enough', (env) => {
  expect(() => readSettings(env, [])).toThrow('Not configured');
});
test('an address without a scope is refused', () => {
  expect(() => readSettings({ ...token, RUNNER_URL: 'http://host:1/' }, [])).toThrow('No scope');
});

describe('configured before it runs', () => {
  const folder = (): string => mkdtempSync(join(tmpdir(), 'runner-'));
  const told = [
    '--unattended',
    '--url',
    'http://host:1/acme',
    '--name',
    'r',
    '--labels',
    'a,b',
    '--runnergroup',
    'g',
    '--ephemeral',
    '--disableupdate',
  ];

  test('what config.sh is told by arguments and the environment', () => {
    expect(readConfiguration({ ACTIONS_RUNNER_INPUT_TOKEN: 'T' }, told, folder())).toMatchObject({
      mode: 'token',
      token: 'T',
      scope: 'orgs/acme',
      serverUrl: 'http://host:1',
      name: 'r',
      labels: ['a', 'b'],
      group: 'g',
      ephemeral: true,
      replace: false,
    });
    expect(() => readConfiguration({}, told, folder())).toThrow(
      'Invalid configuration provided for token',
    );
  });

  test('what it has left is what a run goes by, and it leaves nothing twice', () => {
    const home = folder();
    writeFileSync(
      join(home, '.runner'),
      JSON.stringify({ agentName: 'r', serverUrl: 'http://host:1', ephemeral: false }),
    );
    writeFileSync(join(home, '.credentials'), JSON.stringify({ data: { token: 'c' } }));
    expect(readSettings({}, [], home)).toMatchObject({
      mode: 'registered',
      name: 'r',
      serverUrl: 'http://host:1',
      credential: 'c',
      ephemeral: false,
    });
    expect(() => readConfiguration({ ACTIONS_RUNNER_INPUT_TOKEN: 'T' }, told, home)).toThrow(
      'Cannot configure the runner because it is already configured.',
    );
  });
});
