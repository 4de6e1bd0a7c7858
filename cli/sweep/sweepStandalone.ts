/**
 * `holdfast sweep --standalone`: runs the sweep in this process, so it works when the workers do
 * not.
 */
import { pino } from 'pino';
import { sweep } from '../../activities/sweep/sweep.ts';
import type { SweepReport } from '../../core/contract/index.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import { createPorts } from '../../worker/plugin/createPorts.ts';
import { createLogger } from '../../worker/process/logger.ts';
import { createMetrics } from '../../worker/process/metrics.ts';
import { loadConfig, type HoldfastConfig } from '../../worker/settings/config.ts';
import { ConfigError } from '../../worker/settings/configError.ts';
import { listenForShutdown } from '../../worker/process/stopSignal.ts';
import type { Session } from '../shared/session.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

/**
 * Reads the worker's settings for the location to sweep, and the credentials for its scopes.
 * @throws CliError `usage`
 */
export function standaloneConfig(
  env: Readonly<Record<string, string | undefined>>,
): HoldfastConfig {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError)
      throw new CliError(
        'usage',
        `--standalone: the settings of the worker are invalid: ${error.message.replaceAll('\n', '; ')}`,
        { cause: error },
      );
    throw error;
  }
}

/**
 * Runs a sweep in this process. The marks of registrations and workflows are stored in the cluster
 * between two of these sweeps.
 * @throws CliError `interrupted` after SIGINT or SIGTERM, when no further repair was started;
 * ComputeError
 */
export async function sweepStandalone(
  session: Session,
  output: Output,
  config: HoldfastConfig,
  spec: SweepSpec,
): Promise<SweepReport> {
  // The log goes to standard error. Standard output is for the report.
  const logger = createLogger(
    { ...config.log, format: output.json ? 'json' : 'text' },
    pino.destination({ dest: 2, sync: true }),
  );
  const ports = await createPorts(config, { logger, metrics: createMetrics() });
  const stop = listenForShutdown();
  let reported: string | undefined;
  const progress = (doing: string): void => {
    if (doing !== reported) output.note('progress', doing);
    reported = doing;
  };
  try {
    const { compute, ciServers } = ports;
    const marks = (await compute.ownedObjects?.loadMarks()) ?? [];
    const sources = {
      compute,
      ciServers,
      client: session.client,
      taskQueue: config.taskQueue,
      logger,
      resources: 'required',
      progress,
      signal: stop.signal,
    } as const;
    const report = await sweep(sources, spec, marks);
    if (!spec.dryRun && report.incompleteLists.length === 0)
      await compute.ownedObjects?.saveMarks(report.marks);
    return report;
  } catch (error) {
    if (stop.name === undefined) throw error;
    throw new CliError(
      'interrupted',
      `interrupted (${stop.name}): the rest is left to the next sweep`,
      { cause: error },
    );
  } finally {
    stop.dispose();
    await ports.close();
  }
}
