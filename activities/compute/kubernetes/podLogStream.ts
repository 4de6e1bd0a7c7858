import { Readable } from 'node:stream';
import type { V1Pod } from '@kubernetes/client-node';
import pRetry from 'p-retry';
import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodRef } from '../../../core/domain/pod.ts';
import type { LogStreamOptions } from '../../ports/compute.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, toComputeError } from './errors.ts';
import { followLog } from './followedLog.ts';
import { toPodView } from './podView.ts';

type LogQuery = Readonly<Record<string, string | number | boolean>>;

/** Retries of reads that fail while the API server restarts. */
const RETRIES = { retries: 8, minTimeout: 500, maxTimeout: 10_000 };

/**
 * Opens the log of the runner container. If that container has none and the log is not followed,
 * opens the log of the registration that ran before it.
 * @returns `undefined` if neither container has a log, or the pod is deleted
 * @throws ComputeError
 */
export async function podLogStream(
  api: ApiServer,
  objects: ApiObjects,
  pod: PodRef,
  { follow = false, tailLines, signal }: LogStreamOptions,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const logs = new PodLogs(api, objects, pod, signal);
  const tail = omitUndefined({ tailLines });
  if (follow) return await logs.follow(RUNNER_CONTAINER, tail);
  return (
    (await logs.open({ container: RUNNER_CONTAINER, ...tail })) ??
    (await logs.open({ container: REGISTER_CONTAINER, ...tail }))
  );
}

/** Logs of the containers of one pod. */
class PodLogs {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #pod: PodRef;
  readonly #signal: AbortSignal;

  constructor(api: ApiServer, objects: ApiObjects, pod: PodRef, signal: AbortSignal) {
    this.#api = api;
    this.#objects = objects;
    this.#pod = pod;
    this.#signal = signal;
  }

  /** Opens the log of a container, which ends when the container has ended. */
  async follow(
    container: string,
    tail: { readonly tailLines?: number },
  ): Promise<AsyncIterable<Uint8Array> | undefined> {
    const query = { container, timestamps: true };
    const first = await this.open({ ...query, ...tail, follow: true });
    if (first === undefined) return undefined;
    const source = {
      open: async (sinceTime: string, isFollowed: boolean) =>
        await this.#reopen({
          ...query,
          follow: isFollowed,
          ...(sinceTime === '' ? {} : { sinceTime }),
        }),
      hasEnded: async () => await this.#hasEnded(),
    };
    return followLog(first, source, this.#signal);
  }

  /** Opens a stream, which ends without an error if the connection is lost. */
  async open(query: LogQuery): Promise<AsyncIterable<Uint8Array> | undefined> {
    const { name, namespace } = this.#pod;
    const path = `${this.#objects.pathOf('pods', namespace, name)}/log`;
    const signal = this.#signal;
    try {
      const log = await this.#api.open(
        { verb: 'get', resource: 'pods/log', path, query, ofNode: true, signal },
        // A job may print nothing for hours.
        0,
      );
      return query['follow'] === true ? untilLost(log) : untilAborted(log, name, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      const failure = apiFailure(error);
      // 400: the container has not started, or the pod has no container of that name.
      if (isNotFound(error, name) || (failure?.fromApiServer === true && failure.status === 400))
        return undefined;
      throw toComputeError(error, `read the log of pod ${name}`);
    }
  }

  /** Opens a stream, which is empty while the node does not answer. */
  async #reopen(query: LogQuery): Promise<AsyncIterable<Uint8Array> | undefined> {
    try {
      return await this.open(query);
    } catch (error) {
      if (isUnavailable(error)) return untilLost(Readable.from([]));
      throw error;
    }
  }

  async #hasEnded(): Promise<boolean> {
    const { name, namespace, uid } = this.#pod;
    const pod = await pRetry(async () => await this.#objects.get<V1Pod>('pods', namespace, name), {
      ...RETRIES,
      signal: this.#signal,
      shouldRetry: ({ error }) => isUnavailable(error),
    });
    if (pod === undefined || pod.metadata?.uid !== uid) return true;
    const { ended, exit } = toPodView(pod, new Date().toISOString());
    return ended || exit !== undefined;
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ComputeError && error.kind === 'unavailable';
}

async function* untilAborted(
  log: AsyncIterable<Uint8Array>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* log;
  } catch (error) {
    if (!signal.aborted) throw toComputeError(error, `read the log of pod ${name}`);
  }
}

/** Returns a followed log until its stream ends for any reason. The reader opens it again. */
async function* untilLost(log: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* log;
  } catch {
    // The next stream starts where this one ended.
  }
}
