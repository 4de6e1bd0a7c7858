/** Timeouts that the worker's config sets for scopes: under a runner's own, and over the built-in defaults. Pure. */
import { z } from 'zod';
import { RUNNER_TIMEOUTS, STOP_TIMEOUTS, type RunnerTimeouts, type StopInput } from '../contract/index.ts';
import { scopeKeys, type Scope } from '../domain/ciServer.ts';
import { duration, durationFields, type FieldsOf } from './fields.ts';

/** Duration strings; what is absent is left to the next less specific entry. */
export interface ScopeTimeouts extends Pick<RunnerTimeouts, 'podUnscheduled' | 'podPending' | 'registration' | 'jobTimeout'>, Pick<StopInput, 'signalTimeout' | 'cleanupTimeout'> {
  /** The longest job timeout that a runner may ask for. @default "24h" */
  jobTimeoutCap?: string;
}

export interface TimeoutPolicy {
  /** Of every scope, and of plain commands. */
  default?: ScopeTimeouts;
  /** Keys: `acme`, `acme/web`, or `enterprises/big`. */
  scopes?: Record<string, ScopeTimeouts>;
}

/** As long as a duration may be. */
export const LONGEST_JOB_TIMEOUT = '3650d';

const { podUnscheduled, podPending, registration, jobTimeout } = durationFields(RUNNER_TIMEOUTS);
const { signalTimeout, cleanupTimeout } = durationFields(STOP_TIMEOUTS);
const scopeTimeouts = z.strictObject({ podUnscheduled, podPending, registration, jobTimeout, jobTimeoutCap: duration.exactOptional(), signalTimeout, cleanupTimeout } satisfies FieldsOf<ScopeTimeouts>);
/** How settings name a scope. */
export const scopeKey = z.string().regex(/^(enterprises\/)?[A-Za-z0-9_.-]+$|^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/, 'is no scope: write an organization ("acme"), a repository ("acme/web") or "enterprises/NAME"');

/** Of HOLDFAST_TIMEOUTS. */
export const timeoutPolicySchema = z.strictObject({
  default: scopeTimeouts.exactOptional(),
  scopes: z.record(scopeKey, scopeTimeouts).exactOptional(),
} satisfies FieldsOf<TimeoutPolicy>);

/** Field by field, the most specific entry wins: repository, then its owner, then `default`. Names are compared as GitHub does, without case. */
export function timeoutsFor(policy: TimeoutPolicy, scope: Scope | undefined): ScopeTimeouts {
  const entries = new Map(Object.entries(policy.scopes ?? {}).map(([key, value]) => [key.toLowerCase(), value]));
  const merged: ScopeTimeouts = { ...policy.default };
  for (const key of scope === undefined ? [] : scopeKeys(scope)) Object.assign(merged, entries.get(key));
  return merged;
}
