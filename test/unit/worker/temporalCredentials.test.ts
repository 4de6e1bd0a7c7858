import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { loadTemporalConfig } from '../../../worker/settings/temporalConfig.ts';
import {
  credentialsChange,
  withCredentials,
} from '../../../worker/temporal/temporalCredentials.ts';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
const pair = (
  crt: string,
  key = 'key',
): { tls: { clientCertPair: { crt: Uint8Array; key: Uint8Array } } } => ({
  tls: { clientCertPair: { crt: bytes(crt), key: bytes(key) } },
});

describe('the action after the credentials are read again', () => {
  type Each = Parameters<typeof credentialsChange>[0];
  test.each<[string, Each, Each, ReturnType<typeof credentialsChange>]>([
    ['no key, as before', {}, {}, { kind: 'none' }],
    ['the same key', { apiKey: 'a', tls: true }, { apiKey: 'a', tls: true }, { kind: 'none' }],
    [
      'another key',
      { apiKey: 'a', tls: true },
      { apiKey: 'b', tls: true },
      { kind: 'apiKey', apiKey: 'b' },
    ],
    ['a key after none', { tls: true }, { apiKey: 'b', tls: true }, { kind: 'reconnect' }],
    ['no key after one', { apiKey: 'a', tls: true }, { tls: true }, { kind: 'reconnect' }],
    ['the same certificate, read again', pair('one'), pair('one'), { kind: 'none' }],
    ['another certificate', pair('one'), pair('two'), { kind: 'reconnect' }],
    ['another key of the certificate', pair('one', 'a'), pair('one', 'b'), { kind: 'reconnect' }],
    [
      'another CA of the server',
      { tls: { serverRootCACertificate: bytes('a') } },
      { tls: { serverRootCACertificate: bytes('b') } },
      { kind: 'reconnect' },
    ],
    [
      'both',
      { apiKey: 'a', ...pair('one') },
      { apiKey: 'b', ...pair('two') },
      { kind: 'reconnect' },
    ],
  ])('%s', (_what, before, now, change) => {
    expect(credentialsChange(before, now)).toEqual(change);
  });
});

test('only credentials are updated: another server or namespace in the profile is ignored', () => {
  const before = {
    address: 'here:7233',
    namespace: 'a',
    connectionOptions: { address: 'here:7233', apiKey: 'a', tls: true, metadata: { x: 'y' } },
  };
  const now = {
    address: 'there:7233',
    namespace: 'b',
    connectionOptions: { address: 'there:7233', apiKey: 'b' },
  };
  expect(withCredentials(before, now)).toEqual({
    address: 'here:7233',
    namespace: 'a',
    connectionOptions: { address: 'here:7233', apiKey: 'b', metadata: { x: 'y' } },
  });
});

describe('the file of the API key', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-api-key-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'key');
  const env = { HOME: folder, HOLDFAST_TEMPORAL_API_KEY_FILE: file };

  test('is read each time; a key enables TLS, like TEMPORAL_API_KEY', () => {
    writeFileSync(file, 'one\n');
    expect(loadTemporalConfig(env).connectionOptions).toMatchObject({ apiKey: 'one', tls: true });
    writeFileSync(file, 'two\n');
    expect(loadTemporalConfig(env).connectionOptions).toMatchObject({ apiKey: 'two', tls: true });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'is missing',
      { HOLDFAST_TEMPORAL_API_KEY_FILE: join(folder, 'none') },
      /^HOLDFAST_TEMPORAL_API_KEY_FILE: cannot read .*none \(ENOENT\)/,
    ],
    [
      'is set together with the key',
      { TEMPORAL_API_KEY: 'hunter2' },
      /^TEMPORAL_API_KEY and HOLDFAST_TEMPORAL_API_KEY_FILE are both set: keep one of the two$/,
    ],
  ])('%s: an error that names the setting', (_what, more, message) => {
    expect(() => loadTemporalConfig({ ...env, ...more })).toThrow(message);
  });

  test('is empty: an error that names the setting', () => {
    writeFileSync(file, '\n');
    expect(() => loadTemporalConfig(env)).toThrow(
      /^HOLDFAST_TEMPORAL_API_KEY_FILE: .* is empty: put the API key into it$/,
    );
  });
});
