import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, toComputeError } from './errors.ts';
import type { PodRef } from '../../../core/domain/pod.ts';

/** Lines of a log to look at for its last bytes. */
const TAIL_LINES = 2_000;
/** So many lines are never longer: a runtime cuts those that are longer than 16 KiB. What is sent beyond is not read. */
const MAX_BYTES = TAIL_LINES * 16_384;
/** As with all calls that are no watch, in ms. */
const TIMEOUT_MS = 30_000;

/**
 * The last bytes of the runner container's log, or of the registration's that failed before it; `undefined` when there is none, or none any more.
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
    // 400: the container has not started, its log is gone with it, or the pod has none of that name.
    if (isNotFound(error, name) || (failure?.fromApiServer === true && failure.status === 400))
      return undefined;
    throw toComputeError(error, `read the log of pod ${name}`);
  }
}

/** Holds no more than these and a chunk: what a job writes may be more than a worker's memory. */
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
