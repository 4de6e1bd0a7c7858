/** The connection to Temporal, from the same variables and profile files as the Temporal CLI reads. */
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';

/** Where Temporal is, and as whom we go there. */
export interface TemporalConfig {
  readonly connectionOptions: NativeConnectionOptions;
  /** For messages: `host:port`. */
  readonly address: string;
  /** @default "default" */
  readonly namespace: string;
}

/**
 * Reads `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS*`, `TEMPORAL_PROFILE`, `TEMPORAL_CONFIG_FILE`, …
 * (https://docs.temporal.io/develop/environment-configuration).
 * @throws Error with a one-line message when a profile or a key file cannot be read
 */
export function loadTemporalConfig(env: Readonly<Record<string, string | undefined>> = process.env): TemporalConfig {
  const overrideEnvVars: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && value !== '') overrideEnvVars[name] = value;
  }
  const { connectionOptions, namespace } = loadClientConnectConfig({ overrideEnvVars });
  const address = connectionOptions.address ?? 'localhost:7233';
  return { connectionOptions: { ...connectionOptions, address }, address, namespace: namespace ?? 'default' };
}
