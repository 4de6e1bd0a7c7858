/** Can anything still write from this node? Pure. */
import type { V1Node } from '@kubernetes/client-node';

/** An administrator's word that the node is down for good: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** `unreachable`: nobody knows what its pods do. */
export function nodeState({ spec, status }: V1Node): 'ready' | 'fenced' | 'unreachable' {
  if (spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE)) return 'fenced';
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    ? 'ready'
    : 'unreachable';
}
