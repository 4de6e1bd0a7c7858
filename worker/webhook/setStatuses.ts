/** What all sets say of themselves, for the metrics: asked at a scrape, remembered for a while, never in the scrape's way. */
import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { SingleFlight } from '../../activities/ciServers/singleFlight.ts';
import type { RunnerSetStatus } from '../../core/contract/index.ts';
import type { SetDirectory } from './setDirectory.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';

/** How old an answer may be. */
const AGE_MS = 10_000;
/** From this age on it is not shown any more: Temporal, or its worker, has been away for too long. */
const STALE_MS = 60_000;
/** A scrape does not wait longer (Prometheus gives up after 10 s); what is there by then is shown, the rest comes with the next one. */
const SCRAPE_WAIT_MS = 4_000;
/** More sets than this are not asked. */
const MAX_SETS = 200;
const QUERIES_AT_ONCE = 10;

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

  /** A set that does not answer is not among them: a gap in a graph is better than a number that is none. Never throws. */
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
