/** Timeouts that the worker's config sets for scopes: under a runner's own, and over the built-in defaults. Pure. */
import type { Scope } from '../domain/ciServer.ts';

/** Duration strings; what is absent is left to the next less specific entry. */
export interface ScopeTimeouts {
  podUnscheduled?: string;
  podPending?: string;
  registration?: string;
  /** Of a runner that names none. */
  jobTimeout?: string;
  /** The longest job timeout that a runner may ask for. */
  jobTimeoutCap?: string;
  signalTimeout?: string;
  cleanupTimeout?: string;
}

/** Keys of `scopes`: `acme`, `acme/web`, or `enterprises/big`. */
export interface TimeoutPolicy {
  readonly default?: ScopeTimeouts;
  readonly scopes?: Readonly<Record<string, ScopeTimeouts>>;
}

/** Field by field, the most specific entry wins: repository, then its owner, then `default`. Names are compared as GitHub does, without case. */
export function timeoutsFor(policy: TimeoutPolicy, scope: Scope | undefined): ScopeTimeouts {
  const entries = new Map(Object.entries(policy.scopes ?? {}).map(([key, value]) => [key.toLowerCase(), value]));
  const merged: ScopeTimeouts = { ...policy.default };
  for (const key of scope === undefined ? [] : keysOf(scope)) Object.assign(merged, entries.get(key.toLowerCase()));
  return merged;
}

/** From the least specific to the most. */
function keysOf({ kind, name }: Scope): string[] {
  switch (kind) {
    case 'enterprise':
      return [`enterprises/${name}`];
    case 'organization':
      return [name];
    case 'repository':
      return [name.split('/')[0] ?? '', name];
  }
}
