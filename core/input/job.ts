/**
 * Parses the input of the `job` workflow (JobInput) into a {@link JobSpec}. Each step becomes the
 * input of a runner.
 */
import { z } from 'zod';
import {
  JOB_STAGES,
  JOB_TIMEOUTS,
  STEP_TIMEOUTS,
  stepWorkflowId,
  type InputError,
  type JobInput,
  type JobTrigger,
  type JobStage,
  type PostStepInput,
  type RunnerInput,
  type StepInput,
  type StepResources,
  type StepSecurityContext,
  type StepStorage,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { stepPath } from '../domain/artifactLayout.ts';
import type { Scope } from '../domain/ciServer.ts';
import type { Location } from '../domain/location.ts';
import {
  formatDuration,
  toMilliseconds,
  parseDuration,
  type Milliseconds,
} from '../domain/duration.ts';
import { UNTRUSTED_VOLUME_SOURCES, volumeSources } from '../domain/untrustedJobs.ts';
import { COMMIT, REF } from '../domain/gitNames.ts';
import { RUNNER_CONTAINER } from '../domain/podTemplate.ts';
import {
  dnsLabel,
  durationFields,
  envFields,
  parseInput,
  scopeFields,
  resolveScope,
  commandLine,
  type FieldsOf,
  type Parsed,
} from './fields.ts';
import { postShareError } from './postShare.ts';
import { parseRunnerInput } from './runner.ts';
import {
  jobTimeoutsFor,
  MAX_JOB_TIMEOUT,
  timeoutsFor,
  type ScopeTimeouts,
  type TimeoutPolicy,
} from './timeoutPolicy.ts';

/**
 * A validated job with its defaults filled in. Its `timeout` counts from the start of its first
 * step's pod.
 */
export interface JobSpec extends Milliseconds<typeof JOB_TIMEOUTS> {
  readonly name: string;
  readonly scope?: Scope;
  /** Steps in the order in which they run. */
  readonly steps: readonly StepSpec[];
  /** Problems that do not make the job invalid but may surprise its author. They are shown. */
  readonly warnings: readonly string[];
  /** Warnings that are also written at the start of the job's own log. @default none */
  readonly loggedWarnings?: readonly string[];
  /** Location of the claim that the job deletes at its end. @default it has none */
  readonly claimLocation?: Location;
}

/** Validated step of a job. */
export interface StepSpec {
  readonly stage: JobStage;
  readonly name: string;
  readonly workflowId: string;
  readonly bestEffort: boolean;
  readonly skipOnSuccess: boolean;
  /** Storage of the step's files. */
  readonly storage: Omit<StepStorage, 'sharedDirSources'>;
  /** Input of the step's `runner` workflow, except for the storage. */
  readonly runner: RunnerInput;
}

/** Context of the validation of a job. */
export interface JobValidationContext {
  readonly workflowId: string;
  /** Run ID, which steps get as BUILD_ID. @default "" */
  readonly runId?: string;
  /** Timeout policy, as in the validation of a runner. @default none */
  readonly policy?: TimeoutPolicy | 'elsewhere' | undefined;
}

/** Maximum number of steps. With more, the job's history would become long. */
export const MAX_STEPS = 100;
/**
 * Maximum size of the input (bytes). Temporal accepts 2 MiB at once, and encrypted data is larger.
 */
const MAX_BYTES = 1_048_576;
/** Variables that a job sets for its steps, now or in a later version. A step must not set them. */
export const JOB_ENV: ReadonlySet<string> = new Set([
  'JOB_NAME',
  'BUILD_ID',
  'JOB_EVENT',
  'JOB_COMMIT',
  'JOB_REF',
  'JOB_BASE',
  'JOB_PULL_REQUEST',
  'JOB_SPEC',
  'JOB_STOP_REASON',
  'SHARED_DIR',
  'ARTIFACT_DIR',
]);

// YAML parses `cpu: 2` as a number.
const quantities = z
  .record(
    z.string().min(1),
    z.union(
      [z.string().min(1), z.number().positive()],
      'must be a quantity, such as 2, "500m" or "4Gi"',
    ),
  )
  .exactOptional();
const volume = z.looseObject({
  name: dnsLabel('a volume name'),
  mountPath: z.string().regex(/^\/[^:\0]+$/, 'must be an absolute path without ":"'),
  readOnly: z.boolean().exactOptional(),
});

const userId = z.number().int().min(0).max(2_147_483_647).exactOptional();
const capabilityNames = z
  .array(z.string().regex(/^[A-Z_]+$/, 'must be a capability such as NET_ADMIN'))
  .exactOptional();
const profile = z.record(z.string(), z.string()).exactOptional();
const securityContext = z.strictObject({
  runAsUser: userId,
  runAsGroup: userId,
  runAsNonRoot: z.boolean().exactOptional(),
  readOnlyRootFilesystem: z.boolean().exactOptional(),
  allowPrivilegeEscalation: z.boolean().exactOptional(),
  privileged: z.boolean().exactOptional(),
  capabilities: z.strictObject({ add: capabilityNames, drop: capabilityNames }).exactOptional(),
  seccompProfile: profile,
  appArmorProfile: profile,
  seLinuxOptions: profile,
} satisfies FieldsOf<StepSecurityContext>);

const stepFields = {
  ...durationFields(STEP_TIMEOUTS),
  name: z
    .string('is missing')
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/,
      'must consist of letters, digits, ".", "_" and "-", at most 63, and begin and end with a letter or a digit',
    ),
  image: z.string().min(1).max(500).exactOptional(),
  commands: z.string().min(1, 'is empty').exactOptional(),
  command: commandLine.exactOptional(),
  env: envFields.exactOptional(),
  resources: z.strictObject({ requests: quantities, limits: quantities }).exactOptional(),
  volumes: z.array(volume).max(20, 'must have at most 20 volumes').exactOptional(),
  securityContext: securityContext.exactOptional(),
  stop: z
    .strictObject({
      target: z.enum(['process', 'group'], 'must be "process" or "group"').exactOptional(),
    })
    .exactOptional(),
  onEviction: z.enum(['fail', 'replace'], 'must be "fail" or "replace"').exactOptional(),
} satisfies FieldsOf<StepInput>;

const postOnly = {
  bestEffort: z.boolean().exactOptional(),
  skipOnSuccess: z.boolean().exactOptional(),
};
const step = z.strictObject({
  ...stepFields,
  bestEffort: z.undefined('is for steps of post only; remove it').exactOptional(),
  skipOnSuccess: z.undefined('is for steps of post only; remove it').exactOptional(),
});

const gitRef = z
  .string()
  .regex(
    REF,
    'must be a name as Git has them: without white space and the characters ~ ^ : ? * [ and \\',
  );

/** Schema of a job. Unknown fields are errors. */
export const jobSchema = z.strictObject({
  ...durationFields(JOB_TIMEOUTS),
  name: z
    .string('is missing')
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/,
      'must consist of letters, digits, ".", "_" and "-", at most 63, and begin and end with a letter or a digit',
    ),
  repository: scopeFields.repository,
  namespace: dnsLabel('a Kubernetes namespace').exactOptional(),
  source: z
    .strictObject({
      event: z.enum(
        ['push', 'pull_request', 'schedule'],
        'must be "push", "pull_request" or "schedule"',
      ),
      commit: z
        .string()
        .regex(COMMIT, "must be a commit's id: at most 64 letters and digits")
        .exactOptional(),
      ref: gitRef.exactOptional(),
      base: gitRef.exactOptional(),
      pullRequest: z.number().int().positive().exactOptional(),
      untrusted: z.boolean('must be true or false').exactOptional(),
    } satisfies FieldsOf<JobTrigger>)
    .exactOptional(),
  pre: z.array(step).exactOptional(),
  test: z
    .array(step, 'is missing: the list of steps that are the job')
    .min(1, 'must have at least one step'),
  post: z
    .array(z.strictObject({ ...stepFields, ...postOnly } satisfies FieldsOf<PostStepInput>))
    .exactOptional(),
});

/**
 * Parses the input of a job. Reports all errors at once.
 * @param raw - the only argument of the workflow
 */
export function parseJobInput(raw: unknown, admission: JobValidationContext): Parsed<JobSpec> {
  const tooLarge = inputSizeError(raw);
  if (tooLarge !== undefined) return { ok: false, errors: [tooLarge] };
  const parsed = parseInput(jobSchema, raw);
  if (!parsed.ok) return parsed;
  const input = parsed.spec as JobInput;
  const { policy = {}, workflowId } = admission;
  const scope =
    input.repository === undefined ? undefined : resolveScope({ repository: input.repository });
  const { timeoutCap = MAX_JOB_TIMEOUT, ...byPolicy } =
    policy === 'elsewhere' ? {} : jobTimeoutsFor(policy, scope, input.name);
  const { timeout, gracePeriod, maxAge } = input;
  const asked = toMilliseconds({
    ...JOB_TIMEOUTS,
    ...byPolicy,
    ...omitUndefined({ timeout, gracePeriod, maxAge }),
  });
  const times = { ...asked, timeoutMs: Math.min(asked.timeoutMs, ms(timeoutCap)) };
  const { podUnscheduled, podPending, registration } =
    policy === 'elsewhere' ? {} : timeoutsFor(policy, scope);
  const comeUp = omitUndefined({ podUnscheduled, podPending, registration });
  const placed = JOB_STAGES.flatMap((stage) =>
    (input[stage] ?? []).map((each, index) => ({
      each: each as PostStepInput,
      stage,
      index,
      spec: stepSpec(
        input,
        each,
        stage,
        stepWorkflowId(workflowId, stage, index + 1),
        comeUp,
        admission,
      ),
    })),
  );
  const errors: InputError[] = [];
  const warnings: string[] = [];
  if (placed.length > MAX_STEPS)
    errors.push({
      code: 'out_of_range',
      field: JOB_STAGES.join(', '),
      message: `have ${placed.length} steps in all, and a job may have ${MAX_STEPS}: do more in one step`,
    });
  if (asked.timeoutMs > times.timeoutMs && timeout !== undefined)
    errors.push({
      code: 'out_of_range',
      field: 'timeout',
      message: `is over the cap of ${timeoutCap}; a job may only lower it (the worker's HOLDFAST_TIMEOUTS names jobs with a higher cap)`,
    });
  if (times.maxAgeMs < times.timeoutMs)
    errors.push({
      code: 'conflict',
      field: 'maxAge',
      message: `is shorter than the job's timeout of ${formatDuration(times.timeoutMs)}: raise it, or lower that`,
    });
  placed.forEach(({ each, stage, index, spec }, position) => {
    const field = `${stage}.${index}`;
    if (placed.slice(0, position).some((other) => other.each.name === each.name))
      errors.push({
        code: 'duplicate',
        field: `${field}.name`,
        message: `is used twice: "${each.name}"`,
      });
    errors.push(
      ...[...stepErrors(each), ...outsidersErrors(input, each)].map((error) => ({
        ...error,
        field: `${field}.${error.field}`,
      })),
    );
    const runner = parseRunnerInput(spec.runner, { workflowId: spec.workflowId, policy });
    if (!runner.ok)
      errors.push(
        ...runner.errors.map((error) => ({
          ...error,
          field: `${field}.${stepField(error.field)}`,
        })),
      );
    // The default grace period needs no warning in each job.
    else if (each.gracePeriod !== undefined)
      warnings.push(...runner.spec.warnings.map((warning) => `${stage} ${each.name}: ${warning}`));
    const { gracePeriod: stepGrace = STEP_TIMEOUTS.gracePeriod } = each;
    const noRoom =
      stage === 'post' || (input.post ?? []).length === 0
        ? undefined
        : postShareError(stepGrace, times.gracePeriodMs);
    if (noRoom !== undefined)
      errors.push({ code: 'conflict', field: `${field}.gracePeriod`, message: noRoom });
  });
  if (errors.length > 0) return { ok: false, errors };
  return {
    ok: true,
    spec: {
      name: input.name,
      ...omitUndefined({ scope }),
      ...times,
      steps: placed.map(({ spec }) => spec),
      warnings,
    },
  };
}

/** Checks the size and the nesting of an input that is often converted to JSON. */
function inputSizeError(raw: unknown): InputError | undefined {
  const field = 'input';
  let text: string;
  try {
    text = JSON.stringify(raw) ?? '';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const message =
      'is nested too deeply for a job; check for a list or an object that contains itself';
    return { code: 'invalid', field, message };
  }
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= MAX_BYTES) return undefined;
  const message = `has ${bytes} bytes as JSON, and may have ${MAX_BYTES}: put long scripts into the steps' images`;
  return { code: 'out_of_range', field, message };
}

function stepErrors({ commands, command, env = {}, volumes = [] }: StepInput): InputError[] {
  const errors: InputError[] = [];
  if (commands === undefined && command === undefined)
    errors.push({
      code: 'required',
      field: 'commands',
      message: 'is missing: give a script (commands), or a program and its arguments (command)',
    });
  if (commands !== undefined && command !== undefined)
    errors.push({
      code: 'conflict',
      field: 'commands, command',
      message:
        'exclude each other: give a script (commands), or a program and its arguments (command)',
    });
  for (const name of Object.keys(env))
    if (JOB_ENV.has(name))
      errors.push({
        code: 'reserved',
        field: `env.${name}`,
        message: 'is set by the job; remove it',
      });
  volumes.forEach((volume, index) => {
    const sources = volumeSources(volume);
    if (sources.length !== 1)
      errors.push({
        code: 'conflict',
        field: `volumes.${index}`,
        message: `"${volume.name}" must have exactly one source, such as secret, configMap, emptyDir or persistentVolumeClaim; it has ${sources.length === 0 ? 'none' : sources.join(', ')}`,
      });
  });
  return errors;
}

/** Fields of a step's security context that grant no privileges. */
const UNTRUSTED_SECURITY_FIELDS: ReadonlySet<string> = new Set([
  'runAsUser',
  'runAsGroup',
  'runAsNonRoot',
  'readOnlyRootFilesystem',
]);

/**
 * Checks the fields of a step for an untrusted change. The author of such a job should leave out
 * these fields, but that is verified here.
 */
function outsidersErrors(
  { source }: JobInput,
  { volumes = [], securityContext: rights = {} }: StepInput,
): InputError[] {
  if (source?.untrusted !== true) return [];
  const refused = Object.keys(rights)
    .filter((field) => !UNTRUSTED_SECURITY_FIELDS.has(field))
    .map((field): InputError => ({
      code: 'denied',
      field: `securityContext.${field}`,
      message: `is not for the run of an outsider's change: it may have ${[...UNTRUSTED_SECURITY_FIELDS].join(', ')}`,
    }));
  const ofVolumes = volumes.flatMap((volume, index): InputError[] => {
    const kind = volumeSources(volume).find((each) => !UNTRUSTED_VOLUME_SOURCES.includes(each));
    return kind === undefined
      ? []
      : [
          {
            code: 'denied',
            field: `volumes.${index}`,
            message: `"${volume.name}" is a ${kind}, which is not for the run of an outsider's change: it may have ${UNTRUSTED_VOLUME_SOURCES.join(', ')}`,
          },
        ];
  });
  return [...refused, ...ofVolumes];
}

/** Names in a step of the fields of a runner's input with which the step is checked. */
const STEP_FIELD: Readonly<Record<string, string>> = {
  'timeouts.jobTimeout': 'timeout',
  'stop.gracePeriod': 'gracePeriod',
};
const stepField = (field: string): string =>
  field.startsWith('pod.') ? 'volumes' : (STEP_FIELD[field] ?? field);

/**
 * Returns the input of a step's runner.
 * @param comeUp - timeouts of the repository for the pods of steps, which a step does not have
 * itself
 */
function stepSpec(
  job: JobInput,
  input: PostStepInput,
  stage: JobStage,
  workflowId: string,
  comeUp: Pick<ScopeTimeouts, 'podUnscheduled' | 'podPending' | 'registration'>,
  admission: JobValidationContext,
): StepSpec {
  const {
    name,
    image,
    commands = '',
    command = ['/bin/sh', '-e', '-c', commands],
    timeout = STEP_TIMEOUTS.timeout,
    gracePeriod = STEP_TIMEOUTS.gracePeriod,
    uploadTimeout = STEP_TIMEOUTS.uploadTimeout,
    onEviction,
    bestEffort = false,
    skipOnSuccess = false,
  } = input;
  const runner: RunnerInput = {
    ciServer: 'none',
    job: admission.workflowId,
    command,
    env: {
      ...input.env,
      JOB_NAME: job.name,
      BUILD_ID: admission.runId ?? '',
      ...sourceEnv(job.source),
    },
    timeouts: { ...comeUp, jobTimeout: timeout },
    stop: { gracePeriod, ...input.stop },
    ...(job.source?.untrusted === true ? { untrusted: true } : {}),
    ...omitUndefined({ image, onEviction, namespace: job.namespace, pod: podOf(input) }),
  };
  const path = stepPath(
    {
      ...omitUndefined({ repository: job.repository }),
      job: job.name,
      buildId: admission.runId ?? '-',
    },
    stage,
    name,
  );
  return {
    stage,
    name,
    workflowId,
    bestEffort,
    skipOnSuccess,
    storage: { path, timeout: uploadTimeout },
    runner,
  };
}

function sourceEnv(source: JobTrigger | undefined): Record<string, string> {
  if (source === undefined) return {};
  const { event, commit, ref, base, pullRequest } = source;
  return omitUndefined({
    JOB_EVENT: event,
    JOB_COMMIT: commit,
    JOB_REF: ref,
    JOB_BASE: base,
    JOB_PULL_REQUEST: pullRequest === undefined ? undefined : String(pullRequest),
  });
}

function podOf({
  resources,
  volumes = [],
  securityContext: rights,
}: StepInput): RunnerInput['pod'] {
  if (resources === undefined && volumes.length === 0 && rights === undefined) return undefined;
  const volumeMounts = volumes.map(({ name, mountPath, readOnly }) => ({
    name,
    mountPath,
    ...omitUndefined({ readOnly }),
  }));
  const sources = volumes.map(({ mountPath: _path, readOnly: _readOnly, ...source }) => source);
  return {
    spec: {
      containers: [
        {
          name: RUNNER_CONTAINER,
          ...(resources === undefined ? {} : { resources: quantitiesOf(resources) }),
          ...(volumes.length > 0 ? { volumeMounts } : {}),
          ...(rights === undefined ? {} : { securityContext: rights }),
        },
      ],
      ...(volumes.length > 0 ? { volumes: sources } : {}),
    },
  };
}

/** Returns the quantities as strings, as in Kubernetes. */
function quantitiesOf(resources: StepResources): StepResources {
  return Object.fromEntries(
    Object.entries(resources).map(([kind, amounts = {}]) => [
      kind,
      Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)])),
    ]),
  );
}

const ms = (text: string): number => parseDuration(text) ?? Number.NaN;
