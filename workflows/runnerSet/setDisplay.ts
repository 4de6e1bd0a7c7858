import { setCurrentDetails, upsertMemo, workflowInfo } from '@temporalio/workflow';
import {
  SET_CAPACITY_MEMO,
  SET_DELETION_MEMO,
  SET_ROUTING_MEMO,
  type SetDeletion,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import { routingInfo, scaleSetRoutingInfo } from '../../core/domain/routingInfo.ts';
import { advertisedCapacity } from './size.ts';
import type { SetState } from './state.ts';
import { areDetailsDue, setDetails } from './status.ts';

/** Publishes the state of a set in the details and the memo of its workflow. */
export class SetDisplay {
  /** Time of the last update of the details (ms since the epoch). */
  #detailsAt = 0;

  /** Publishes the state. */
  publish(state: SetState, now: number): void {
    if (areDetailsDue(state, this.#detailsAt, now)) {
      setCurrentDetails(setDetails(state, now));
      this.#detailsAt = now;
    }
    const { spec, full, ending } = state.facts;
    const { memo = {} } = workflowInfo();
    const routing =
      spec.scaleSet === undefined
        ? spec.scope && routingInfo(spec, full, ending !== undefined)
        : scaleSetRoutingInfo(spec);
    const capacity = spec.scaleSet === undefined ? undefined : advertisedCapacity(state);
    const change = {
      ...(routing === undefined || sameRouting(memo[SET_ROUTING_MEMO], routing)
        ? {}
        : { [SET_ROUTING_MEMO]: routing }),
      ...(ending === undefined || memo[SET_DELETION_MEMO] !== undefined
        ? {}
        : { [SET_DELETION_MEMO]: { reason: ending } satisfies SetDeletion }),
      ...((memo[SET_CAPACITY_MEMO] ?? undefined) === capacity
        ? {}
        : { [SET_CAPACITY_MEMO]: capacity ?? null }),
    };
    if (Object.keys(change).length > 0) upsertMemo(change);
  }
}

function sameRouting(memo: unknown, routing: SetRoutingInfo): boolean {
  return routingText((memo ?? {}) as Partial<SetRoutingInfo>) === routingText(routing);
}

/**
 * Returns the text for comparison, which is independent of the order of the fields, because a memo
 * does not preserve it.
 */
function routingText(routing: Partial<SetRoutingInfo>): string {
  const { ciServer, labels, scope, scopeKind, group, groupJobs, atCapacity, draining } = routing;
  return JSON.stringify([
    ciServer,
    labels,
    scope,
    scopeKind,
    group,
    groupJobs,
    atCapacity,
    draining,
  ]);
}
