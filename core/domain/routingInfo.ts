/** Describes which jobs a set serves, for its workflow's memo. */
import type { SetRoutingInfo } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';
import type { RunnerGroupRef, Scope } from './ciServer.ts';
import type { CiServerKind } from './ciServerKind.ts';

/**
 * Returns the routing of a set.
 * @param spec - plain commands have no CI server and no scope, and get no jobs
 */
export function routingInfo(
  {
    ciServer,
    labels,
    scope,
    group,
    groupJobs,
  }: {
    readonly ciServer?: CiServerKind;
    readonly labels: readonly string[];
    readonly scope?: Scope;
    readonly group: RunnerGroupRef;
    readonly groupJobs?: true;
  },
  full = false,
  ends = false,
): SetRoutingInfo {
  return {
    ...omitUndefined({ ciServer }),
    labels: [...labels],
    scope: scope?.name ?? '',
    scopeKind: scope?.kind ?? 'organization',
    ...omitUndefined({
      group: group === 'default' ? undefined : group,
      groupJobs,
      atCapacity: full ? (true as const) : undefined,
      draining: ends ? (true as const) : undefined,
    }),
  };
}

/**
 * Returns the routing of a set whose jobs GitHub assigns. It has no CI server, so the webhook has
 * no job for it; its labels are for checks of the installation.
 */
export function scaleSetRoutingInfo(spec: Parameters<typeof routingInfo>[0]): SetRoutingInfo {
  const { ciServer: _none, ...routing } = routingInfo(spec);
  return routing;
}
