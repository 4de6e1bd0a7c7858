import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isAbsence, toComputeError } from './errors.ts';
import type { PodRef } from '../../../core/domain/pod.ts';

/** Lines of a log to look at for its last bytes. */
const TAIL_LINES = 2_000;

/**
 * The last bytes of the runner container's log, or of the registration's that failed before it; `undefined` when there is none, or none any more.
 * @throws ComputeError
 */
export async function podLogTail(api: ApiServer, objects: ApiObjects, pod: PodRef, maxBytes: number): Promise<string | undefined> {
  return (await containerLogTail(api, objects, pod, RUNNER_CONTAINER, maxBytes)) ?? (await containerLogTail(api, objects, pod, REGISTER_CONTAINER, maxBytes));
}

async function containerLogTail(api: ApiServer, objects: ApiObjects, { name, namespace }: PodRef, container: string, maxBytes: number): Promise<string | undefined> {
  try {
    const text = await api.text({ verb: 'get', resource: 'pods/log', path: `${objects.pathOf('pods', namespace, name)}/log`, query: { container, tailLines: TAIL_LINES } });
    const bytes = Buffer.from(text);
    if (bytes.length === 0) return undefined;
    return bytes.length <= maxBytes ? text : bytes.subarray(bytes.length - maxBytes).toString('utf8');
  } catch (error) {
    const failure = apiFailure(error);
    // 400: the container has not started, its log is gone with it, or the pod has none of that name.
    if (isAbsence(error, name) || (failure?.own === true && failure.status === 400)) return undefined;
    throw toComputeError(error, `read the log of pod ${name}`);
  }
}
