/**
 * Parses the input of the `runner` workflow (RunnerInput) into a {@link RunnerSpec}. Combinations
 * of fields are checked in runnerChecks.ts.
 */
import {
  type OnEviction,
  type RerunPolicy,
  RUNNER_INTERVALS,
  RUNNER_TIMEOUTS,
  type RunnerInput,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerGroupRef, Scope } from '../domain/ciServer.ts';
import { type CiServerKind, DEFAULT_CI_SERVER } from '../domain/ciServerKind.ts';
import { type Milliseconds, toMilliseconds } from '../domain/duration.ts';
import type { PodRequest, SupervisorConfig } from '../domain/pod.ts';
import { SET_LABEL } from '../domain/podTemplate.ts';
import {
  RUNNER_KIND_OF_SERVER,
  RUNNER_KINDS,
  type RunnerKindName,
} from '../domain/runnerKinds/runnerKinds.ts';
import { DEFAULT_CREDENTIAL, parseAndCheck, type Parsed, resolveScope } from './fields.ts';
import { graceBudget, type GraceBudget } from './graceBudget.ts';
import { RERUN_DEFAULTS } from './rerun.ts';
import { runnerErrors, runnerWarnings } from './runnerChecks.ts';
import {
  MAX_JOB_TIMEOUT,
  type ScopeTimeouts,
  type TimeoutPolicy,
  timeoutsFor,
} from './timeoutPolicy.ts';
import { runnerSchema } from './runnerSchema.ts';

/** A validated runner with its defaults filled in. */
export interface RunnerSpec {
  /**
   * Prefix of its runner names. With {@link nameHash}, each name is known before anything is
   * registered.
   */
  readonly name: string;
  /** Hash that distinguishes its runner names from others. Empty if there is no execution yet. */
  readonly nameHash: string;
  /** Kind of CI server. Absent, like the scope, for a plain command without a CI server. */
  readonly ciServer?: CiServerKind;
  readonly scope?: Scope;
  readonly credential: string;
  readonly runnerGroup: RunnerGroupRef;
  readonly labels: readonly string[];
  readonly ephemeral: boolean;
  readonly registrationMode: 'jit' | 'token';
  /** Whether a static runner never updates itself. */
  readonly disableUpdate: boolean;
  /** Scale set that the runner belongs to. Absent: none. */
  readonly scaleSet?: { readonly name: string; readonly adopt: boolean };
  readonly set?: string;
  /** ID of the `job` workflow, if it is a step. */
  readonly job?: string;
  readonly onEviction: OnEviction;
  readonly maxAttempts: number;
  /** Limits for jobs that run again after their runner was lost. Absent: none runs again. */
  readonly rerun?: Required<Pick<RerunPolicy, 'perRun' | 'perDay'>> &
    Pick<RerunPolicy, 'forceCancelAfter'>;
  /** Pod of each of its runners. */
  readonly pod: Omit<PodRequest, 'identity'> &
    Required<Pick<PodRequest, 'supervision' | 'volumeClaims' | 'jobTimeoutCapMs'>>;
  readonly timeouts: Milliseconds<typeof RUNNER_TIMEOUTS>;
  readonly intervals: Milliseconds<typeof RUNNER_INTERVALS>;
  /** Problems that do not make the runner invalid but may surprise its author. They are shown. */
  readonly warnings: readonly string[];
}

/** Context of the validation of a runner. */
export interface RunnerValidationContext {
  /** Workflow ID, from which the runner gets its name if the input has none. @default "" */
  readonly workflowId?: string;
  /** See {@link RunnerSpec.nameHash}. @default "" */
  readonly nameHash?: string;
  /**
   * Timeouts for scopes in the worker's configuration. With `elsewhere` they are unknown here, and
   * checks that depend on them are left to the worker.
   * @default none
   */
  readonly policy?: TimeoutPolicy | 'elsewhere' | undefined;
}

/**
 * Parses the input of a runner. Reports all errors at once.
 * @param raw - the only argument of the workflow
 */
export function parseRunnerInput(
  raw: unknown,
  admission: RunnerValidationContext = {},
): Parsed<RunnerSpec> {
  const { policy = {} } = admission;
  const parsed = parseAndCheck(
    runnerSchema,
    raw,
    (each: RunnerInput) => {
      const { byScope, grace, isGraceKnown } = policyOf(each, policy);
      return runnerErrors(each, {
        jobTimeoutCap: byScope.jobTimeoutCap,
        signalTimeoutMs: isGraceKnown ? grace.signalTimeoutMs : Number.MAX_SAFE_INTEGER,
      });
    },
    ['ciServer'],
  );
  if (!parsed.ok) return parsed;
  const input: RunnerInput = parsed.spec;
  const { scope, byScope, grace } = policyOf(input, policy);
  return { ok: true, spec: toSpec(input, scope, byScope, grace, admission) };
}

/** Returns the settings in the worker's configuration for the runner's scope. */
function policyOf(
  input: RunnerInput,
  policy: NonNullable<RunnerValidationContext['policy']>,
): {
  readonly scope: Scope | undefined;
  readonly byScope: ScopeTimeouts & { jobTimeoutCap: string };
  readonly grace: GraceBudget;
  readonly isGraceKnown: boolean;
} {
  const scope = input.ciServer === 'none' ? undefined : resolveScope(input);
  const byScope =
    policy === 'elsewhere'
      ? { jobTimeoutCap: MAX_JOB_TIMEOUT }
      : { jobTimeoutCap: RUNNER_TIMEOUTS.jobTimeout, ...timeoutsFor(policy, scope) };
  const grace = graceBudget(input.stop ?? {}, byScope);
  const isGraceKnown =
    policy !== 'elsewhere' ||
    input.stop?.signalTimeout !== undefined ||
    input.stop?.gracePeriod !== undefined;
  return { scope, byScope, grace, isGraceKnown };
}

function toRunnerGroup({ runnerGroup: name, runnerGroupId: id }: RunnerInput): RunnerGroupRef {
  if (name !== undefined) return { name };
  return id === undefined ? 'default' : { id };
}

function toScaleSet({ demand, scaleSet = {}, set }: RunnerInput): RunnerSpec['scaleSet'] {
  const name = scaleSet.name ?? set;
  if (demand !== 'scaleSet' || name === undefined) return undefined;
  return { name, adopt: scaleSet.adopt ?? false };
}

function toSpec(
  input: RunnerInput,
  scope: Scope | undefined,
  byScope: ScopeTimeouts & { jobTimeoutCap: string },
  grace: GraceBudget,
  { workflowId = '', nameHash = '' }: RunnerValidationContext,
): RunnerSpec {
  const {
    ciServer = DEFAULT_CI_SERVER,
    credential = DEFAULT_CREDENTIAL,
    ephemeral = true,
    onEviction = 'fail',
    maxAttempts = 10,
    set,
    job,
  } = input;
  const {
    signalTimeout: _signal,
    cleanupTimeout: _cleanup,
    jobTimeoutCap,
    ...timeoutsOfScope
  } = byScope;
  const asked = toMilliseconds({ ...RUNNER_TIMEOUTS, ...timeoutsOfScope, ...input.timeouts });
  const { jobTimeoutCapMs } = toMilliseconds({ jobTimeoutCap });
  const timeouts = { ...asked, jobTimeoutMs: Math.min(asked.jobTimeoutMs, jobTimeoutCapMs) };
  const kind: RunnerKindName = ciServer === 'none' ? 'command' : RUNNER_KIND_OF_SERVER[ciServer];
  const supervision = toSupervision(input, kind, grace, timeouts);
  return {
    name: input.name ?? nameFromWorkflowId(workflowId),
    nameHash,
    ...omitUndefined({ ciServer: ciServer === 'none' ? undefined : ciServer, scope, set, job }),
    credential,
    runnerGroup: toRunnerGroup(input),
    labels: input.labels ?? RUNNER_KINDS[kind].defaultLabels,
    ephemeral,
    // A JIT config is single-use, so a runner that takes many jobs needs a registration token.
    registrationMode: ephemeral ? 'jit' : 'token',
    disableUpdate: input.disableUpdate ?? true,
    ...omitUndefined({ scaleSet: toScaleSet(input) }),
    onEviction,
    maxAttempts,
    ...(input.rerun?.onLoss === true ? { rerun: limitsOf(input.rerun) } : {}),
    pod: { ...toPod(input, grace.podSeconds, supervision), jobTimeoutCapMs },
    timeouts,
    intervals: toMilliseconds({ ...RUNNER_INTERVALS, ...input.intervals }),
    warnings: runnerWarnings(
      input,
      grace.drainTimeoutMs + grace.signalTimeoutMs + grace.cleanupTimeoutMs,
    ),
  };
}

function toSupervision(
  { ciServer, ephemeral = true, onTerm, supervisor: mode, stop = {} }: RunnerInput,
  kind: RunnerKindName,
  { podSeconds: _pod, ...grace }: GraceBudget,
  { jobTimeoutMs, registrationMs }: RunnerSpec['timeouts'],
): SupervisorConfig {
  const { stop: stopOfKind } = RUNNER_KINDS[kind];
  const {
    signals,
    cleanupCommand,
    gracePeriod,
    target = gracePeriod === undefined ? stopOfKind.signalTarget : 'process',
  } = stop;
  return {
    ...omitUndefined({ mode, signals, cleanupCommand }),
    ...grace,
    signalTarget: target,
    runnerKind: kind,
    ephemeral,
    onTerm: onTerm ?? stopOfKind.onTerm,
    // The workflow measures the timeout of a CI runner's job, because the container also runs
    // without a job.
    ...(ciServer === 'none' ? { timeoutMs: jobTimeoutMs } : {}),
    startupTimeoutMs: registrationMs,
  };
}

function toPod(
  { set, volumeClaims = [], storage, untrusted, pod: template, ...input }: RunnerInput,
  podSeconds: number,
  supervision: SupervisorConfig,
): Omit<RunnerSpec['pod'], 'jobTimeoutCapMs'> {
  const { namespace, image, command, args, env, proxy, ca } = input;
  return {
    ...omitUndefined({ namespace, image, command, args, env, template, proxy, ca }),
    labels: set === undefined ? {} : { [SET_LABEL]: set },
    terminationGracePeriodSeconds: podSeconds,
    supervision,
    volumeClaims,
    ...(untrusted === true ? { untrusted: true as const } : {}),
    ...(storage === undefined
      ? {}
      : {
          storage: {
            path: storage.path,
            sharedDirSources: storage.sharedDirSources,
            ...toMilliseconds({ timeout: storage.timeout }),
          },
        }),
  };
}

function limitsOf({
  perRun,
  perDay,
  forceCancelAfter,
}: RerunPolicy): NonNullable<RunnerSpec['rerun']> {
  return { ...RERUN_DEFAULTS, ...omitUndefined({ perRun, perDay, forceCancelAfter }) };
}

function nameFromWorkflowId(workflowId: string): string {
  const cleaned = workflowId
    .replace(/^runner-/, '')
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .replace(/^[-_.]+/, '')
    .slice(0, 50);
  return cleaned === '' ? 'runner' : cleaned;
}
