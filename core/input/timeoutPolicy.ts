/** Timeouts that the worker's config sets for scopes: under a runner's own, and over the built-in defaults. Pure. */
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

/** Duration strings; what is absent is left to the next less specific entry. */
export interface ScopeTimeouts
  extends
    Pick<RunnerTimeouts, 'podUnscheduled' | 'podPending' | 'registration' | 'jobTimeout'>,
    Pick<StopInput, 'signalTimeout' | 'cleanupTimeout'> {
  /** The longest job timeout that a runner may ask for. A plain command has it once, for all its attempts together. @default "24h" */
  jobTimeoutCap?: string;
}

/** Of jobs of several steps. Duration strings; what is absent is left to the next less specific entry. */
export interface JobTimeouts extends Pick<JobInput, 'timeout' | 'gracePeriod' | 'maxAge'> {
  /** The longest timeout that a job may ask for. @default "24h" */
  timeoutCap?: string;
}

type ScopeEntry = ScopeTimeouts & {
  /** Of the jobs of several steps there. */
  jobs?: JobTimeouts;
};

/** Timeouts from the worker's setting HOLDFAST_TIMEOUTS. */
export interface TimeoutPolicy {
  /** Timeouts of all scopes and of plain commands. */
  default?: ScopeEntry;
  /** Keys: `acme`, `acme/web`, or `enterprises/big`. */
  scopes?: Record<string, ScopeEntry>;
  /** Timeouts of individual jobs with steps, by name. */
  jobs?: Record<string, JobTimeouts>;
}

/** Of a job's own timeout, where nothing else is set. */
const JOB_TIMEOUT_CAP = '24h';

/** As long as a duration may be. */
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
/** How settings name a scope. */
export const scopeKey = z
  .string()
  .regex(
    /^(enterprises\/)?[A-Za-z0-9_.-]+$|^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/,
    'is no scope: write an organization ("acme"), a repository ("acme/web") or "enterprises/NAME"',
  );

/** Of HOLDFAST_TIMEOUTS. */
export const timeoutPolicySchema = z.strictObject({
  default: scopeEntry.exactOptional(),
  scopes: z.record(scopeKey, scopeEntry).exactOptional(),
  jobs: z.record(z.string(), jobTimeouts).exactOptional(),
} satisfies FieldsOf<TimeoutPolicy>);

/** Field by field, the most specific entry wins: repository, then its owner, then `default`. Names are compared without case. */
export function timeoutsFor(policy: TimeoutPolicy, scope: Scope | undefined): ScopeTimeouts {
  const { jobs: _jobs, ...merged } = Object.assign({}, ...entriesFor(policy, scope)) as ScopeEntry;
  return merged;
}

/** The same of a job of several steps; its own entry, by name, is the most specific. */
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

/** From the least specific to the most. */
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
