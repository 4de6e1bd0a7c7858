import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { normalizeRunnerLabels } from '../ciServers/normalizeLabels.ts';

/**
 * Returns the routing of a set with labels in the form in which its CI server compares them. Memos
 * contain labels as the user wrote them.
 */
export function withNormalizedLabels(routing: SetRoutingInfo): SetRoutingInfo {
  const { ciServer, labels } = routing;
  return ciServer === undefined
    ? routing
    : { ...routing, labels: normalizeRunnerLabels(ciServer, labels) };
}
