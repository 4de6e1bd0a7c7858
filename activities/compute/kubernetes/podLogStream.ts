import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodRef } from '../../../core/domain/pod.ts';
import type { LogStreamOptions } from '../../ports/compute.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, toComputeError } from './errors.ts';

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
  options: LogStreamOptions,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const runner = await containerLog(api, objects, pod, RUNNER_CONTAINER, options);
  if (runner !== undefined || options.follow === true) return runner;
  return await containerLog(api, objects, pod, REGISTER_CONTAINER, options);
}

async function containerLog(
  api: ApiServer,
  objects: ApiObjects,
  { name, namespace }: PodRef,
  container: string,
  { follow, tailLines, signal }: LogStreamOptions,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const path = `${objects.pathOf('pods', namespace, name)}/log`;
  const query = { container, ...omitUndefined({ follow, tailLines }) };
  try {
    const log = await api.open(
      { verb: 'get', resource: 'pods/log', path, query, ofNode: true, signal },
      // A job may print nothing for hours.
      0,
    );
    return untilAborted(log, name, signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    const failure = apiFailure(error);
    // 400: the container has not started, or the pod has no container of that name.
    if (isNotFound(error, name) || (failure?.fromApiServer === true && failure.status === 400))
      return undefined;
    throw toComputeError(error, `read the log of pod ${name}`);
  }
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
