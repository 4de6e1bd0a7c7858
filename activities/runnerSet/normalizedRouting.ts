import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { normalizeRunnerLabels } from '../ciServers/normalizeLabels.ts';

/** Returns what a set serves with its labels as its CI server compares them. Memos have them as they were written. */
export function withNormalizedLabels(routing: SetRoutingInfo): SetRoutingInfo {
  const { ciServer, labels } = routing;
  return ciServer === undefined
    ? routing
    : { ...routing, labels: normalizeRunnerLabels(ciServer, labels) };
}
