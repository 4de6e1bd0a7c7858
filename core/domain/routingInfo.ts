/** What a set's workflow says of the jobs that it is for. */
import type { SetCover } from '../contract/index.ts';
import { defined } from './omitUndefined.ts';
import type { Scope } from './ciServer.ts';

/** @param spec - plain commands have no scope, and no job is for them */
export function setCover(
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
): SetCover {
  return {
    labels: [...labels],
    scope: scope?.name ?? '',
    scopeKind: scope?.kind ?? 'organization',
    ...defined({
      group,
      full: full ? (true as const) : undefined,
      ends: ends ? (true as const) : undefined,
    }),
  };
}
