import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, toComputeError } from './errors.ts';
import type { PodRef } from '../../../core/domain/pod.ts';

/** Number of lines at the end of a log that are read for its last bytes. */
const TAIL_LINES = 2_000;
/**
 * Maximum bytes read. So many lines are never longer, because a container runtime splits lines at
 * 16 KiB. Everything beyond is not read.
 */
const MAX_BYTES = TAIL_LINES * 16_384;
/** Timeout (ms), the same as for all requests except watches. */
const TIMEOUT_MS = 30_000;

/**
 * Returns the last bytes of the log of the runner container, or of the registration container that
 * failed before it.
 * @returns `undefined` if there is no log, or none any more
 * @throws ComputeError
 */
export async function podLogTail(
  api: ApiServer,
  objects: ApiObjects,
  pod: PodRef,
  maxBytes: number,
): Promise<string | undefined> {
  return (
    (await containerLogTail(api, objects, pod, RUNNER_CONTAINER, maxBytes)) ??
    (await containerLogTail(api, objects, pod, REGISTER_CONTAINER, maxBytes))
  );
}

async function containerLogTail(
  api: ApiServer,
  objects: ApiObjects,
  { name, namespace }: PodRef,
  container: string,
  maxBytes: number,
): Promise<string | undefined> {
  try {
    const query = { container, tailLines: TAIL_LINES, limitBytes: MAX_BYTES };
    const log = await api.open(
      {
        verb: 'get',
        resource: 'pods/log',
        path: `${objects.pathOf('pods', namespace, name)}/log`,
        query,
        ofNode: true,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      TIMEOUT_MS,
    );
    return (await lastBytes(log, maxBytes)) || undefined;
  } catch (error) {
    const failure = apiFailure(error);
    // 400: the container has not started, its log was deleted with it, or the pod has no container
    // with this name.
    if (isNotFound(error, name) || (failure?.fromApiServer === true && failure.status === 400))
      return undefined;
    throw toComputeError(error, `read the log of pod ${name}`);
  }
}

/**
 * Returns the last bytes. It holds only these bytes and one chunk in memory, because the output of
 * a job may be larger than the worker's memory.
 */
async function lastBytes(log: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let held = 0;
  let read = 0;
  for await (const chunk of log) {
    chunks.push(chunk);
    held += chunk.length;
    while (held - (chunks[0]?.length ?? 0) >= maxBytes) held -= chunks.shift()?.length ?? 0;
    if ((read += chunk.length) >= MAX_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(-maxBytes).toString('utf8');
}
