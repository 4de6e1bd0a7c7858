/** Credentials of the connection to Temporal, which are read again when their files change. */
import { isDeepStrictEqual } from 'node:util';
import type { NativeConnectionOptions } from '@temporalio/worker';
import type { TemporalConfig } from '../settings/temporalConfig.ts';

/** Action that changed credentials require. */
export type CredentialsChange =
  | { readonly kind: 'none' }
  | { readonly kind: 'apiKey'; readonly apiKey: string }
  | { readonly kind: 'reconnect' };

/** Interval between reads of the credentials' files (ms). */
export const CREDENTIALS_CHECK_MS = 10_000;

type Credentials = Pick<NativeConnectionOptions, 'apiKey' | 'tls'>;

/**
 * Compares credentials. A connection accepts a new API key, but keeps its TLS settings
 * (certificates, keys, whether TLS is used) for its lifetime. Only credentials are compared: a
 * process keeps its server and namespace, whatever its profile says later.
 */
export function credentialsChange(before: Credentials, now: Credentials): CredentialsChange {
  const isSecured = (each: Credentials): boolean => each.apiKey !== undefined;
  if (!isDeepStrictEqual(before.tls, now.tls) || isSecured(before) !== isSecured(now))
    return { kind: 'reconnect' };
  return now.apiKey === undefined || now.apiKey === before.apiKey
    ? { kind: 'none' }
    : { kind: 'apiKey', apiKey: now.apiKey };
}

/** Returns the previous server's settings with the current credentials. */
export function withCredentials(
  before: TemporalConfig,
  { connectionOptions: { apiKey, tls } }: TemporalConfig,
): TemporalConfig {
  const { apiKey: _apiKey, tls: _tls, ...rest } = before.connectionOptions;
  return {
    ...before,
    connectionOptions: {
      ...rest,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(tls === undefined ? {} : { tls }),
    },
  };
}
