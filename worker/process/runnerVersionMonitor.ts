/**
 * Asks the CI servers until when they accept the runner versions of the sets, and notifies the
 * sets. Without it, a set would only learn from exit statuses that the CI server rejects its
 * runners.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import {
  runnerVersionSignal,
  setDeclarationQuery,
  type RunnerVersionStatus,
} from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  imageVersion,
  isDeadlineNear,
  runnerVersionText,
  templateImage,
} from '../../core/domain/runnerVersion.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';

/** Options of {@link RunnerVersionMonitor}. */
export interface RunnerVersionMonitorOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  /** Returns the workflow IDs of the running sets. */
  readonly sets: () => Promise<Iterable<string>>;
  readonly ciServers: CiServers;
  /** Image of runners whose template has no image. */
  readonly defaultImage: string | undefined;
  readonly logger: Pick<Logger, 'warn'>;
  /** Interval between two rounds (ms). @default 86400000 */
  readonly intervalMs?: number;
}

const DAY_MS = 24 * 3_600_000;
/** Time to wait before the first round, in which the worker starts to answer queries (ms). */
const FIRST_MS = 30_000;
/** Time to wait before the next round if a set or a CI server did not answer (ms). */
const RETRY_MS = 3_600_000;
const QUERY_DEADLINE_MS = 5_000;
const AT_ONCE = 5;

type Ask = (credential: string, scope: Scope, version: string) => Promise<RunnerVersionStatus>;

/** Checks the runner versions once a day until it is stopped. */
export class RunnerVersionMonitor {
  readonly #options: RunnerVersionMonitorOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RunnerVersionMonitorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * Checks all sets once, with one request for each scope, credential and version.
   * @returns whether all sets and CI servers answered
   */
  async check(): Promise<boolean> {
    const { sets, logger } = this.#options;
    const asked = new Map<string, Promise<RunnerVersionStatus>>();
    const ask: Ask = async (credential, scope, version) => {
      const key = `${credential} ${scope.kind} ${scope.name} ${version}`;
      const answer = asked.get(key) ?? this.#ask(credential, scope, version);
      asked.set(key, answer);
      return await answer;
    };
    let complete = true;
    try {
      await pMap(
        await sets(),
        async (workflowId) => {
          try {
            await this.#checkSet(workflowId, ask);
          } catch (error) {
            complete = false;
            logger.warn({ err: error, workflowId }, 'failed to check the runner version of a set');
          }
        },
        { concurrency: AT_ONCE, signal: this.#stopping.signal },
      );
    } catch (error) {
      if (!this.#stopping.signal.aborted)
        logger.warn({ err: error }, 'failed to list the sets for the check of runner versions');
      return false;
    }
    return complete;
  }

  async #run(): Promise<void> {
    const { intervalMs = DAY_MS } = this.#options;
    const { signal } = this.#stopping;
    for (let waitMs = FIRST_MS; !signal.aborted;) {
      await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) waitMs = (await this.check()) ? intervalMs : RETRY_MS;
    }
  }

  async #checkSet(workflowId: string, ask: Ask): Promise<void> {
    const { client, defaultImage, logger } = this.#options;
    const handle = client().workflow.getHandle(workflowId);
    const [declaration, status] = await client().withDeadline(
      Date.now() + QUERY_DEADLINE_MS,
      async () =>
        await Promise.all([
          handle.query(setDeclarationQuery),
          querySetStatus(client(), workflowId, { max: 0 }),
        ]),
    );
    const parsed = parseRunnerSetInput(declaration, {
      hash: () => '',
      checkSchedule: scheduleError,
      policy: 'elsewhere',
    });
    const version = imageVersion(templateImage(declaration.template) ?? defaultImage ?? '');
    if (!parsed.ok || parsed.spec.scope === undefined || version === undefined) return;
    const { credential, scope } = parsed.spec;
    const found = await ask(credential, scope, version);
    if (isDeadlineNear(found, Date.now()))
      logger.warn(
        { set: status.name, ...found },
        'runner version of a set is accepted for less than a week; use an image with a newer one',
      );
    const known = status.runnerVersion;
    if (known === undefined || runnerVersionText(known) !== runnerVersionText(found))
      await handle.signal(runnerVersionSignal, { ...found, at: Date.now() });
  }

  async #ask(credential: string, scope: Scope, version: string): Promise<RunnerVersionStatus> {
    const server = this.#options.ciServers.get(credential);
    const deadline = await server.versionDeadline?.(scope, version, this.#stopping.signal);
    const { jobsUntil, registrationUntil } = deadline ?? {};
    return {
      version,
      ...omitUndefined({
        jobsUntil: jobsUntil === undefined ? undefined : isoTime(jobsUntil),
        registrationUntil: registrationUntil === undefined ? undefined : isoTime(registrationUntil),
      }),
    };
  }
}
