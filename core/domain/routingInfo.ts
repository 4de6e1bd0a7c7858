/** What a set's workflow says of the jobs that it is for. */
import type { SetRoutingInfo } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';
import type { Scope } from './ciServer.ts';

/** @param spec - plain commands have no scope, and no job is for them */
export function routingInfo(
  {
    labels,
    scope,
    group,
  }: {
    readonly labels: readonly string[];
    readonly scope?: Scope;
    readonly group?: number | string;
  },
  full = false,
  ends = false,
): SetRoutingInfo {
  return {
    labels: [...labels],
    scope: scope?.name ?? '',
    scopeKind: scope?.kind ?? 'organization',
    ...omitUndefined({
      group,
      atCapacity: full ? (true as const) : undefined,
      draining: ends ? (true as const) : undefined,
    }),
  };
}
