import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodRecord } from './podDirectory.ts';
import type { PodView } from '../../../core/domain/pod.ts';

/**
 * Converts the state of a process pod to a pod view. Its node, this machine, is known from the
 * start.
 */
export function toPodView({ spec, started, stop, exit }: PodRecord): PodView {
  return omitUndefined({
    name: spec.name,
    uid: spec.uid,
    workflowId: spec.workflowId,
    scheduled: true,
    node: spec.node,
    createdAt: spec.createdAt,
    startedAt: started?.at,
    ended: exit !== undefined,
    deleted: false,
    // The kernel does not report the reason of a SIGKILL to the parent process, so an OOM kill
    // appears only as 137.
    exit:
      exit &&
      omitUndefined({
        code: exit.code,
        oomKilled: false,
        finishedAt: exit.finishedAt,
        message: exit.message,
      }),
    terminating: stop !== undefined,
    terminationDeadline: stop?.deadline,
    reason: exit?.reason,
  });
}
