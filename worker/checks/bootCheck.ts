/** Everything around the worker that must be right before runners can work. The worker checks it at start, `holdfast doctor` at any time. */
import type { ConnectionLike } from '@temporalio/client';
import { connectTemporal } from '../connect.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import { checkCompute } from './computeCheck.ts';
import { checkCredentials } from './credentialCheck.ts';
import type { Finding } from './finding.ts';
import { checkTemporal } from './temporalCheck.ts';

/**
 * Connects to Temporal and checks it, the compute and the credentials. Never throws: what goes wrong is a finding.
 * @param options.timeoutMs - how long to wait for Temporal, in ms. @default 5000
 */
export async function checkAll(config: HoldfastConfig, { timeoutMs = 5_000 }: { timeoutMs?: number } = {}): Promise<Finding[]> {
  const temporal = async (): Promise<Finding[]> => {
    try {
      const connection = await connectTemporal(config.temporal, { timeoutMs });
      try {
        return await checkTemporal(connection, config.temporal);
      } finally {
        await connection.close();
      }
    } catch (error) {
      const [what, fix] = oneLine(error).split(/: (?=set TEMPORAL_ADDRESS)/);
      return [{ level: 'error', what: what ?? '', fix: fix ?? 'look at the message' }];
    }
  };
  return (await Promise.all([temporal(), checkCompute(config), checkCredentials(config.credentials)])).flat();
}

/** The same on a connection that is there already. @throws what the connection throws when Temporal is away */
export async function checkSurroundings(config: HoldfastConfig, connection: ConnectionLike): Promise<Finding[]> {
  return (await Promise.all([checkTemporal(connection, config.temporal), checkCompute(config), checkCredentials(config.credentials)])).flat();
}
