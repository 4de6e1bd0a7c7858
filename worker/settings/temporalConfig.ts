/**
 * Reads the connection to Temporal from the same variables and profile files as the Temporal CLI.
 */
import { readFileSync } from 'node:fs';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';

/** Address of the Temporal server and its credentials. */
export interface TemporalConfig {
  readonly connectionOptions: NativeConnectionOptions;
  /** Address for messages: `host:port`. */
  readonly address: string;
  /** @default "default" */
  readonly namespace: string;
}

/**
 * Reads `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS*`,
 * `TEMPORAL_PROFILE`, `TEMPORAL_CONFIG_FILE` and the other variables of
 * https://docs.temporal.io/develop/environment-configuration.
 * @throws Error with a one-line message if a profile or a key file cannot be read
 */
export function loadTemporalConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
): TemporalConfig {
  const { connectionOptions, namespace } = loadClientConnectConfig({
    overrideEnvVars: temporalVariables(env),
  });
  const address = connectionOptions.address ?? 'localhost:7233';
  return {
    connectionOptions: { ...connectionOptions, address },
    address,
    namespace: namespace ?? 'default',
  };
}

/**
 * Returns the variables that have a value, for Temporal's own loader. The API key is read from its
 * file, if that is set.
 * @throws Error with a one-line message if the file cannot be read, or two settings contain the key
 */
export function temporalVariables(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const set: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && value !== '') set[name] = value;
  const file = set['HOLDFAST_TEMPORAL_API_KEY_FILE'];
  if (file === undefined) return set;
  if (set['TEMPORAL_API_KEY'] !== undefined)
    throw new Error(
      'TEMPORAL_API_KEY and HOLDFAST_TEMPORAL_API_KEY_FILE are both set: keep one of the two',
    );
  return { ...set, TEMPORAL_API_KEY: readApiKey(file) };
}

function readApiKey(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(
      `HOLDFAST_TEMPORAL_API_KEY_FILE: cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path and its permissions`,
      { cause: error },
    );
  }
  if (key === '')
    throw new Error(`HOLDFAST_TEMPORAL_API_KEY_FILE: ${file} is empty: put the API key into it`);
  return key;
}
