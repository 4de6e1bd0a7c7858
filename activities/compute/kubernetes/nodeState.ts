/** Determines whether anything can still write from a node. Pure. */
import type { V1Node } from '@kubernetes/client-node';

/**
 * Taint with which an administrator declares that the node is shut down:
 * https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
 */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Returns the state of a node. `unreachable` means that the state of its pods is unknown. */
export function nodeState({ spec, status }: V1Node): 'ready' | 'fenced' | 'unreachable' {
  if (spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE)) return 'fenced';
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    ? 'ready'
    : 'unreachable';
}
