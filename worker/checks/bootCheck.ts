/** Everything around the worker that must be right before runners can work. The worker checks it at start, `holdfast doctor` at any time. */
import type { ConnectionLike } from '@temporalio/client';
import { connectTemporal } from '../temporal/connect.ts';
import { createCompute } from '../plugin/createPorts.ts';
import { connectNative } from '../temporal/nativeConnection.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import { checkCodec } from './codecCheck.ts';
import { checkCompute } from './computeCheck.ts';
import { checkCredentials } from './credentialCheck.ts';
import { checkPublicGroups } from './publicGroupsCheck.ts';
import type { Finding } from './finding.ts';
import { checkLocation } from './locationCheck.ts';
import { checkOtherTemporal } from './otherTemporalCheck.ts';
import { checkRerunPermissions } from './rerunPermissionCheck.ts';
import { checkRunnerVersions } from './runnerVersionCheck.ts';
import { checkSetLabels } from './setLabelsCheck.ts';
import { checkTemporal } from './temporalCheck.ts';
import { checkVersions } from './versionCheck.ts';

/**
 * Connects to Temporal and checks it, the compute and the credentials. Never throws: what goes wrong is a finding.
 * @param options.timeoutMs - how long to wait for Temporal, in ms. @default 5000
 */
export async function runAllChecks(
  config: HoldfastConfig,
  { timeoutMs = 5_000 }: { timeoutMs?: number } = {},
): Promise<Finding[]> {
  try {
    const connection = await connectTemporal(config.temporal, {
      connect: connectNative,
      timeoutMs,
    });
    try {
      const findings = await runEnvironmentChecks(config, connection);
      if (findings.some(({ level }) => level === 'error')) return findings;
      return [
        ...findings,
        ...(await checkRunners(config, connection)),
        ...(await checkVersions(config, connection)),
        ...(await checkSetLabels(config, connection)),
        ...(await checkRunnerVersions(config, connection)),
        ...(await checkRerunPermissions(config.credentials)),
        ...(await checkPublicGroups(config.credentials)),
      ];
    } finally {
      await connection.close();
    }
  } catch (error) {
    const [what, fix] = oneLine(error).split(/: (?=set TEMPORAL_ADDRESS)/);
    const away: Finding = {
      level: 'error',
      message: what ?? '',
      fix: fix ?? 'look at the message',
    };
    return [
      away,
      checkCodec(config),
      ...(await checkCompute(config)),
      ...(await checkCredentials(config.credentials)),
    ];
  }
}

/** The same but for the place and the versions of workers, on a connection that is there already. @throws what the connection throws when Temporal is away */
export async function runEnvironmentChecks(
  config: HoldfastConfig,
  connection: ConnectionLike,
): Promise<Finding[]> {
  const [temporal, compute, credentials] = await Promise.all([
    checkTemporal(connection, config.temporal),
    checkCompute(config),
    checkCredentials(config.credentials),
  ]);
  return [...temporal, checkCodec(config), ...compute, ...credentials];
}

const SILENT = { info: () => undefined, warn: () => undefined };

/** Checks whose the runners are that the task queue and the cluster have. */
async function checkRunners(
  config: HoldfastConfig,
  connection: ConnectionLike,
): Promise<Finding[]> {
  const { compute, close } = await createCompute(config, { logger: SILENT });
  try {
    return [
      await checkLocation(config, connection, async () => await compute.location()),
      ...(await checkOtherTemporal(config, connection, compute)),
    ];
  } finally {
    await close?.();
  }
}
