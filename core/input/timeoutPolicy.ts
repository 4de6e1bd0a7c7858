/**
 * Timeouts for scopes in the worker's configuration. They override the built-in defaults, and a
 * runner's own timeouts override them. Pure.
 */
import { z } from 'zod';
import {
  JOB_TIMEOUTS,
  RUNNER_TIMEOUTS,
  STOP_TIMEOUTS,
  type JobInput,
  type RunnerTimeouts,
  type StopInput,
} from '../contract/index.ts';
import { scopeKeys, type Scope } from '../domain/ciServer.ts';
import { durationString, durationFields, type FieldsOf } from './fields.ts';

/**
 * Timeouts of a scope, as duration strings. A field that is absent is taken from the next less
 * specific entry.
 */
export interface ScopeTimeouts
  extends
    Pick<RunnerTimeouts, 'podUnscheduled' | 'podPending' | 'registration' | 'jobTimeout'>,
    Pick<StopInput, 'signalTimeout' | 'cleanupTimeout'> {
  /**
   * Maximum job timeout that a runner may request. For a plain command it applies once, to all its
   * attempts together.
   * @default "24h"
   */
  jobTimeoutCap?: string;
}

/**
 * Timeouts of jobs with steps, as duration strings. A field that is absent is taken from the next
 * less specific entry.
 */
export interface JobTimeouts extends Pick<JobInput, 'timeout' | 'gracePeriod' | 'maxAge'> {
  /** Maximum timeout that a job may request. @default "24h" */
  timeoutCap?: string;
}

type ScopeEntry = ScopeTimeouts & {
  /** Timeouts of the scope's jobs with steps. */
  jobs?: JobTimeouts;
};

/** Timeouts from the worker's setting HOLDFAST_TIMEOUTS. */
export interface TimeoutPolicy {
  /** Timeouts of all scopes and of plain commands. */
  default?: ScopeEntry;
  /** Timeouts of scopes. Keys: `acme`, `acme/web`, or `enterprises/big`. */
  scopes?: Record<string, ScopeEntry>;
  /** Timeouts of individual jobs with steps, by name. */
  jobs?: Record<string, JobTimeouts>;
}

/** Maximum timeout of a job if nothing else is set. */
const JOB_TIMEOUT_CAP = '24h';

/** Maximum duration. */
export const MAX_JOB_TIMEOUT = '3650d';

const { podUnscheduled, podPending, registration, jobTimeout } = durationFields(RUNNER_TIMEOUTS);
const { signalTimeout, cleanupTimeout } = durationFields(STOP_TIMEOUTS);
const jobTimeouts = z.strictObject({
  ...durationFields(JOB_TIMEOUTS),
  timeoutCap: durationString.exactOptional(),
} satisfies FieldsOf<JobTimeouts>);
const scopeEntry = z.strictObject({
  podUnscheduled,
  podPending,
  registration,
  jobTimeout,
  jobTimeoutCap: durationString.exactOptional(),
  signalTimeout,
  cleanupTimeout,
  jobs: jobTimeouts.exactOptional(),
} satisfies FieldsOf<ScopeEntry>);
/** Schema of the name of a scope in settings. */
export const scopeKey = z
  .string()
  .regex(
    /^(enterprises\/)?[A-Za-z0-9_.-]+$|^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/,
    'must be an organization ("acme"), a repository ("acme/web") or "enterprises/NAME"',
  );

/** Schema of HOLDFAST_TIMEOUTS. */
export const timeoutPolicySchema = z.strictObject({
  default: scopeEntry.exactOptional(),
  scopes: z.record(scopeKey, scopeEntry).exactOptional(),
  jobs: z.record(z.string(), jobTimeouts).exactOptional(),
} satisfies FieldsOf<TimeoutPolicy>);

/**
 * Returns the timeouts of a scope. Field by field, the most specific entry wins: repository, then
 * its owner, then `default`. Names are compared without case.
 */
export function timeoutsFor(policy: TimeoutPolicy, scope: Scope | undefined): ScopeTimeouts {
  const { jobs: _jobs, ...merged } = Object.assign({}, ...entriesFor(policy, scope)) as ScopeEntry;
  return merged;
}

/** Returns the timeouts of a job with steps. Its own entry, by name, is the most specific. */
export function jobTimeoutsFor(
  policy: TimeoutPolicy,
  scope: Scope | undefined,
  name: string,
): JobTimeouts {
  const own = Object.hasOwn(policy.jobs ?? {}, name) ? policy.jobs?.[name] : undefined;
  return Object.assign(
    { timeoutCap: JOB_TIMEOUT_CAP },
    ...entriesFor(policy, scope).map(({ jobs }) => jobs),
    own,
  ) as JobTimeouts;
}

/** Returns the entries for a scope, from the least to the most specific. */
function entriesFor(
  { default: all = {}, scopes = {} }: TimeoutPolicy,
  scope: Scope | undefined,
): ScopeEntry[] {
  const entries = new Map(Object.entries(scopes).map(([key, value]) => [key.toLowerCase(), value]));
  return [
    all,
    ...(scope === undefined ? [] : scopeKeys(scope)).flatMap((key) => entries.get(key) ?? []),
  ];
}
