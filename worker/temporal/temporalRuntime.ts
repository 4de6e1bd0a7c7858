/**
 * Installs the process-wide runtime of the Temporal SDK. Its log and metrics become part of those
 * of the process, and its signal handling is disabled.
 */
import { createServer } from 'node:net';
import { Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import { PHASE_BUCKETS, PHASE_DURATION_METRIC } from '../../core/domain/phaseDurationMetric.ts';
import { temporalLogger } from './temporalLogger.ts';

/**
 * Installs the runtime. Call it before the first connection.
 * @returns a function that returns the current metrics of the SDK as Prometheus text
 */
export async function installTemporalRuntime(logger: Logger): Promise<() => Promise<string>> {
  const { address } = await installOnFreePort(logger);
  return async () => {
    const response = await fetch(`http://${address}/metrics`, {
      signal: AbortSignal.timeout(2_000),
    });
    if (!response.ok)
      throw new Error(`failed to read the metrics of the Temporal SDK: HTTP ${response.status}`);
    return await response.text();
  };
}

/**
 * Installs the runtime with a free port for its metrics. The SDK does not report which port it got
 * for port 0, so a free one is searched first.
 */
async function installOnFreePort(logger: Logger): Promise<{ address: string }> {
  for (let tries = 1; ; tries++) {
    const address = `127.0.0.1:${await freePort()}`;
    try {
      Runtime.install({
        logger: temporalLogger(logger),
        telemetryOptions: {
          logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
          metrics: {
            prometheus: {
              bindAddress: address,
              useSecondsForDurations: true,
              countersTotalSuffix: true,
              histogramBucketOverrides: { [PHASE_DURATION_METRIC]: [...PHASE_BUCKETS] },
            },
          },
        },
        // The process handles SIGTERM itself: see run.ts.
        shutdownSignals: [],
      });
      return { address };
    } catch (error) {
      if (tries >= 5 || !(error instanceof Error) || !/address.*in use/i.test(error.message))
        throw error;
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no free port on 127.0.0.1');
  return address.port;
}
