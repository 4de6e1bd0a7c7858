import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodRecord } from './podDirectory.ts';
import type { PodView } from '../../../core/domain/pod.ts';

/** What a process pod looks like through the port. It has its node from the start: this machine. */
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
    // The kernel does not tell a local process's parent why SIGKILL came: an OOM kill shows as 137 only.
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
