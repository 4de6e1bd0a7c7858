/**
 * Checks of the worker's settings and environment. The worker runs them at its start,
 * `holdfast doctor` at any time.
 */
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
 * Connects to Temporal and checks it, the compute and the credentials. Never throws: a failed check
 * is a finding.
 * @param options.timeoutMs - maximum time to wait for Temporal (ms).
 * @default 5000
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
      fix: fix ?? 'fix the cause in the message, then run "holdfast doctor"',
    };
    return [
      away,
      checkCodec(config),
      ...(await checkCompute(config)),
      ...(await checkCredentials(config.credentials)),
    ];
  }
}

/**
 * Runs the checks of {@link runAllChecks} that do not depend on the location or on running sets,
 * over an existing connection.
 * @throws the error of the connection if Temporal does not answer
 */
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

/** Checks that the existing runners of the task queue and the cluster belong to this worker. */
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
