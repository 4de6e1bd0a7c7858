/**
 * Reads the statuses of all sets for the metrics. They are queried at a scrape and cached, and
 * never block the scrape.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { SingleFlight } from '../../activities/ciServers/singleFlight.ts';
import type { RunnerSetStatus } from '../../core/contract/index.ts';
import type { SetDirectory } from './setDirectory.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';

/** Maximum age of a status before it is queried again (ms). */
const AGE_MS = 10_000;
/**
 * Age from which a status is no longer reported (ms). Temporal or the worker has then been
 * unavailable for too long.
 */
const STALE_MS = 60_000;
/**
 * Maximum wait of a scrape (ms); Prometheus gives up after 10 s. Later statuses are in the next
 * scrape.
 */
const SCRAPE_WAIT_MS = 4_000;
/** Maximum number of sets queried. */
const MAX_SETS = 200;
const QUERIES_AT_ONCE = 10;

/** Cache of the statuses of all sets, for the metrics. */
export class SetStatuses {
  readonly #sets: SetDirectory;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #log = new RateLimitedLogger();
  #known: readonly RunnerSetStatus[] = [];
  #at = -Infinity;
  readonly #asking = new SingleFlight(async () => await this.#ask());

  constructor(sets: SetDirectory, logger: Pick<Logger, 'warn'>) {
    this.#sets = sets;
    this.#logger = logger;
  }

  /**
   * Returns the known statuses. A set that does not answer is missing, because a gap in a graph is
   * better than a wrong number. Never throws.
   */
  async get(): Promise<readonly RunnerSetStatus[]> {
    if (performance.now() - this.#at > AGE_MS) {
      const timeout = new AbortController();
      const late = delay(SCRAPE_WAIT_MS, undefined, { signal: timeout.signal, ref: false }).catch(
        () => undefined,
      );
      await Promise.race([this.#asking.run(), late]);
      timeout.abort();
    }
    return performance.now() - this.#at > STALE_MS ? [] : this.#known;
  }

  async #ask(): Promise<void> {
    const found: RunnerSetStatus[] = [];
    try {
      const { sets, unknown } = await this.#sets.list(AGE_MS);
      const ids = [...sets.map(({ workflowId }) => workflowId), ...unknown].slice(0, MAX_SETS);
      await pMap(
        ids,
        async (id) => {
          const status = await this.#sets
            .status(id)
            .catch((error: unknown) => this.#logOnce(error));
          if (status) found.push(status);
        },
        { concurrency: QUERIES_AT_ONCE },
      );
    } catch (error) {
      this.#logOnce(error);
      return;
    }
    this.#known = found;
    this.#at = performance.now();
  }

  #logOnce(error: unknown): undefined {
    this.#log.line('status', (leftOut) =>
      this.#logger.warn(
        { err: error, leftOut },
        'the status of runner sets is missing in /metrics',
      ),
    );
  }
}
