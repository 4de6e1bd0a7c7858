/** The credentials with which a process speaks to Temporal, followed while their files change. */
import { isDeepStrictEqual } from 'node:util';
import type { NativeConnectionOptions } from '@temporalio/worker';
import type { TemporalConfig } from '../settings/temporalConfig.ts';

/** What has to be done about credentials that were read anew. */
export type CredentialsChange =
  | { readonly kind: 'none' }
  | { readonly kind: 'apiKey'; readonly apiKey: string }
  | { readonly kind: 'reconnect' };

/** How often their files are looked at, in ms. */
export const CREDENTIALS_CHECK_MS = 10_000;

type Credentials = Pick<NativeConnectionOptions, 'apiKey' | 'tls'>;

/**
 * A connection takes another API key as it is; what belongs to its TLS (certificates, keys, whether there is any) it has for good.
 * Only credentials: a process that is at one server and namespace stays there, whatever its profile says meanwhile.
 */
export function credentialsChange(before: Credentials, now: Credentials): CredentialsChange {
  const isSecured = (each: Credentials): boolean => each.apiKey !== undefined;
  if (!isDeepStrictEqual(before.tls, now.tls) || isSecured(before) !== isSecured(now))
    return { kind: 'reconnect' };
  return now.apiKey === undefined || now.apiKey === before.apiKey
    ? { kind: 'none' }
    : { kind: 'apiKey', apiKey: now.apiKey };
}

/** Those of now, for the server of before. */
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
