import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { DEFAULT_CI_SERVER } from '../../core/domain/ciServerKind.ts';
import { normalizeLabels } from '../ciServers/normalizeLabels.ts';

/** Returns what a set serves with its labels as its CI server compares them. Memos have them as they were written. */
export function withNormalizedLabels(routing: SetRoutingInfo): SetRoutingInfo {
  return { ...routing, labels: normalizeLabels(DEFAULT_CI_SERVER, routing.labels) };
}
