/** Describes which jobs a set serves, for its workflow's memo. */
import type { SetLimits, SetRoutingInfo } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';
import type { RunnerGroupRef, Scope } from './ciServer.ts';
import type { CiServerKind } from './ciServerKind.ts';
import type { ScaleBounds } from './scale.ts';

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
    bounds,
    limits,
  }: {
    readonly ciServer?: CiServerKind;
    readonly labels: readonly string[];
    readonly scope?: Scope;
    readonly group: RunnerGroupRef;
    readonly groupJobs?: true;
    readonly bounds: Pick<ScaleBounds, 'replaceAhead'>;
    readonly limits: SetLimits;
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
      prompt: actsOnJobs({ bounds, limits }) ? (true as const) : undefined,
    }),
  };
}

function actsOnJobs({
  bounds,
  limits: { perRepository, repositories = [] },
}: Pick<Parameters<typeof routingInfo>[0], 'bounds' | 'limits'>): boolean {
  return bounds.replaceAhead > 0 || perRepository !== undefined || repositories.length > 0;
}

/**
 * Returns the routing of a set whose jobs GitHub assigns. It has no CI server, so the webhook has
 * no job for it; its labels are for checks of the installation.
 */
export function scaleSetRoutingInfo(spec: Parameters<typeof routingInfo>[0]): SetRoutingInfo {
  const { ciServer: _none, ...routing } = routingInfo(spec);
  return routing;
}
