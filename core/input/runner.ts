/**
 * Parses the input of the `runner` workflow (RunnerInput) into a {@link RunnerSpec}. Combinations
 * of fields are checked in runnerChecks.ts.
 */
import { z } from 'zod';
import {
  RUNNER_INTERVALS,
  RUNNER_TIMEOUTS,
  STOP_TIMEOUTS,
  type OnEviction,
  type RerunPolicy,
  type RunnerInput,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerGroupRef, Scope } from '../domain/ciServer.ts';
import { CI_ID_PATTERN } from '../domain/ciId.ts';
import { CI_SERVER_KINDS, type CiServerKind, DEFAULT_CI_SERVER } from '../domain/ciServerKind.ts';
import { toMilliseconds, parseDuration, type Milliseconds } from '../domain/duration.ts';
import type { PodRequest, SupervisorConfig } from '../domain/pod.ts';
import { SET_LABEL } from '../domain/podTemplate.ts';
import {
  RUNNER_KIND_OF_SERVER,
  RUNNER_KINDS,
  type RunnerKindName,
} from '../domain/runnerKinds/runnerKinds.ts';
import {
  credentialName,
  DEFAULT_CREDENTIAL,
  dnsLabel,
  durationString,
  durationFields,
  envFields,
  parseAndCheck,
  scopeFields,
  resolveScope,
  identifier,
  commandLine,
  type FieldsOf,
  type Parsed,
} from './fields.ts';
import { graceBudget, type GraceBudget } from './graceBudget.ts';
import { caSchema, proxySchema } from './network.ts';
import { RERUN_DEFAULTS, rerunPolicy } from './rerun.ts';
import { runnerErrors, runnerWarnings } from './runnerChecks.ts';
import {
  MAX_JOB_TIMEOUT,
  timeoutsFor,
  type ScopeTimeouts,
  type TimeoutPolicy,
} from './timeoutPolicy.ts';

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

// CI servers permit no longer labels, and control characters are never valid.
const label = z
  .string()
  .regex(
    /^[^\s,\p{Cc}][^,\p{Cc}]{0,255}$/u,
    'must be 1 to 256 characters without commas or control characters',
  );
const metadata = z.record(z.string(), z.string());

/** Schema of a pod template. {@link podTemplateErrors} checks what is in its spec. */
export const podTemplateSchema = z.strictObject({
  metadata: z
    .strictObject({ labels: metadata.exactOptional(), annotations: metadata.exactOptional() })
    .exactOptional(),
  spec: z.record(z.string(), z.unknown()).exactOptional(),
});

/** Schema of a claim that a runner mounts. */
export const volumeClaim = z.strictObject({
  name: dnsLabel('a volume name').max(40, 'must be at most 40 characters'),
  mountPath: z.string().regex(/^\/[^:\0]+$/, 'must be an absolute path without ":"'),
  claim: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be the name of a PersistentVolumeClaim')
    .exactOptional(),
  storage: z
    .string()
    .regex(/^[0-9]+(\.[0-9]+)?([KMGTPE]i?)?$/, 'is not a size; write for example "10Gi"')
    .exactOptional(),
  storageClass: z.string().min(1).max(253).exactOptional(),
  accessModes: z
    .array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod']))
    .min(1)
    .exactOptional(),
  dataSource: z
    .strictObject({
      apiGroup: z.string().min(1).max(253).exactOptional(),
      kind: z.string().min(1).max(63),
      name: z.string().min(1).max(253),
    })
    .exactOptional(),
  selector: z
    .strictObject({
      matchLabels: metadata.exactOptional(),
      matchExpressions: z
        .array(
          z.strictObject({
            key: z.string().min(1),
            operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
            values: z.array(z.string()).exactOptional(),
          }),
        )
        .exactOptional(),
    })
    .exactOptional(),
  annotations: metadata.exactOptional(),
});

const stop = z.strictObject({
  ...durationFields(STOP_TIMEOUTS),
  signals: z.string().exactOptional(),
  target: z.enum(['process', 'group'], 'must be "process" or "group"').exactOptional(),
  cleanupCommand: commandLine.exactOptional(),
});

/** Schema of a path in the artifact store: segments separated by slashes, without `.` and `..`. */
export const storageKey = z
  .string()
  .max(1_000)
  .regex(
    /^(?!\.{1,2}(\/|$))[^/\s\p{Cc}]+(\/(?!\.{1,2}(\/|$))[^/\s\p{Cc}]+)*$/u,
    'must be a path in the store: segments with slashes between them, without white space, "." and ".."',
  );
const storage = z.strictObject({
  path: storageKey,
  sharedDirSources: z.array(storageKey).max(100, 'must have at most 100 keys'),
  timeout: durationString,
});

const CI_SERVERS = [...CI_SERVER_KINDS, 'none'] as const;

/** Schema of a runner. Unknown fields are errors. */
export const runnerSchema = z.strictObject({
  ...scopeFields,
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must consist of letters, digits, ".", "_" and "-"')
    .max(
      50,
      'must be at most 50 characters: a suffix is appended, and a runner name has at most 64',
    )
    .exactOptional(),
  ciServer: z
    .enum(CI_SERVERS, `must be ${CI_SERVERS.map((kind) => `"${kind}"`).join(' or ')}`)
    .exactOptional(),
  credential: credentialName.exactOptional(),
  runnerGroup: z
    .string()
    .regex(/^[^\p{Cc}]{1,200}$/u, 'must be 1 to 200 characters without control characters')
    .exactOptional(),
  runnerGroupId: z
    .string('expected text: put the id in quotes')
    .regex(CI_ID_PATTERN, 'must be 1 to 100 characters without white space and "/"')
    .exactOptional(),
  demand: z.enum(['webhook', 'scaleSet'], 'must be "webhook" or "scaleSet"').exactOptional(),
  scaleSet: z
    .strictObject({
      name: identifier('the name of a scale set')
        .max(64, 'must be at most 64 characters')
        .exactOptional(),
      adopt: z.boolean('must be true or false').exactOptional(),
    })
    .exactOptional(),
  labels: z
    .array(label)
    .min(1, 'must have at least one label')
    .max(100, 'must have at most 100 labels')
    .exactOptional(),
  ephemeral: z.boolean().exactOptional(),
  disableUpdate: z.boolean().exactOptional(),
  set: identifier('a set name').exactOptional(),
  job: z.string().min(1).max(1_000).exactOptional(),
  storage: storage.exactOptional(),
  untrusted: z.boolean('must be true or false').exactOptional(),
  namespace: dnsLabel('a Kubernetes namespace').exactOptional(),
  image: z.string().min(1).max(500).exactOptional(),
  command: commandLine.exactOptional(),
  args: z.array(z.string()).exactOptional(),
  env: envFields.exactOptional(),
  pod: podTemplateSchema.exactOptional(),
  proxy: proxySchema.exactOptional(),
  ca: caSchema.exactOptional(),
  supervisor: z
    .enum(['inject', 'image', 'none'], 'must be "inject", "image" or "none"')
    .exactOptional(),
  volumeClaims: z.array(volumeClaim).max(20, 'must have at most 20 claims').exactOptional(),
  timeouts: z.strictObject(durationFields(RUNNER_TIMEOUTS)).exactOptional(),
  stop: stop.exactOptional(),
  onTerm: z
    .enum(['drain', 'stop', 'checkpoint'], 'must be "drain", "stop" or "checkpoint"')
    .exactOptional(),
  onEviction: z
    .enum(['fail', 'replace', 'resume'], 'must be "fail", "replace" or "resume"')
    .exactOptional(),
  maxAttempts: z.number().int().min(1).max(1_000).exactOptional(),
  rerun: rerunPolicy.exactOptional(),
  intervals: z.strictObject(durationFields(RUNNER_INTERVALS)).exactOptional(),
} satisfies FieldsOf<RunnerInput>);

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
  { podSeconds, ...grace }: GraceBudget,
  { workflowId = '', nameHash = '' }: RunnerValidationContext,
): RunnerSpec {
  const {
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
  const jobTimeoutCapMs = parseDuration(jobTimeoutCap) ?? Number.NaN;
  const timeouts = { ...asked, jobTimeoutMs: Math.min(asked.jobTimeoutMs, jobTimeoutCapMs) };
  const { ciServer = DEFAULT_CI_SERVER } = input;
  const kind: RunnerKindName = ciServer === 'none' ? 'command' : RUNNER_KIND_OF_SERVER[ciServer];
  const { stop: stopOfKind, defaultLabels } = RUNNER_KINDS[kind];
  const {
    signals,
    cleanupCommand,
    gracePeriod,
    target = gracePeriod === undefined ? stopOfKind.signalTarget : 'process',
  } = input.stop ?? {};
  const supervision: SupervisorConfig = {
    ...omitUndefined({ mode: input.supervisor, signals, cleanupCommand }),
    ...grace,
    signalTarget: target,
    runnerKind: kind,
    ephemeral,
    onTerm: input.onTerm ?? stopOfKind.onTerm,
    // The workflow measures the timeout of a CI runner's job, because the container also runs
    // without a job.
    ...(scope === undefined ? { timeoutMs: timeouts.jobTimeoutMs } : {}),
    startupTimeoutMs: timeouts.registrationMs,
  };
  const {
    namespace,
    image,
    command,
    args,
    env: environment,
    pod: template,
    proxy,
    ca,
    volumeClaims = [],
    storage: kept,
  } = input;
  return {
    name: input.name ?? nameFromWorkflowId(workflowId),
    nameHash,
    ...omitUndefined({ ciServer: ciServer === 'none' ? undefined : ciServer, scope, set, job }),
    credential,
    runnerGroup: toRunnerGroup(input),
    labels: input.labels ?? defaultLabels,
    ephemeral,
    // A JIT config is single-use, so a runner that takes many jobs needs a registration token.
    registrationMode: ephemeral ? 'jit' : 'token',
    disableUpdate: input.disableUpdate ?? true,
    ...omitUndefined({ scaleSet: toScaleSet(input) }),
    onEviction,
    maxAttempts,
    ...(input.rerun?.onLoss === true ? { rerun: limitsOf(input.rerun) } : {}),
    pod: {
      ...omitUndefined({ namespace, image, command, args, env: environment, template, proxy, ca }),
      labels: set === undefined ? {} : { [SET_LABEL]: set },
      terminationGracePeriodSeconds: podSeconds,
      supervision,
      volumeClaims,
      ...(input.untrusted === true ? { untrusted: true as const } : {}),
      ...(kept === undefined
        ? {}
        : {
            storage: {
              path: kept.path,
              sharedDirSources: kept.sharedDirSources,
              timeoutMs: parseDuration(kept.timeout) ?? Number.NaN,
            },
          }),
      jobTimeoutCapMs,
    },
    timeouts,
    intervals: toMilliseconds({ ...RUNNER_INTERVALS, ...input.intervals }),
    warnings: runnerWarnings(
      input,
      grace.drainTimeoutMs + grace.signalTimeoutMs + grace.cleanupTimeoutMs,
    ),
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
