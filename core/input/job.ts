/**
 * Parses the input of the `job` workflow (JobInput) into a {@link JobSpec}. Each step becomes the
 * input of a runner.
 */
import {
  JOB_STAGES,
  JOB_TIMEOUTS,
  stepWorkflowId,
  type InputError,
  type JobInput,
  type JobStage,
  type PostStepInput,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { Scope } from '../domain/ciServer.ts';
import type { Location } from '../domain/location.ts';
import { toMilliseconds, type Milliseconds } from '../domain/duration.ts';
import { parseInput, resolveScope, type Parsed } from './fields.ts';
import { parseRunnerInput } from './runner.ts';
import {
  jobTimeoutsFor,
  MAX_JOB_TIMEOUT,
  timeoutsFor,
  type TimeoutPolicy,
} from './timeoutPolicy.ts';
import {
  duplicateErrors,
  inputSizeError,
  jobErrors,
  postShareErrors,
  stepErrors,
  untrustedErrors,
  type JobTimes,
} from './jobChecks.ts';
import { jobSchema } from './jobSchema.ts';
import { stepSpec, type StepSpec } from './stepSpec.ts';

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

/** Context of the validation of a job. */
export interface JobValidationContext {
  readonly workflowId: string;
  /** Run ID, which steps get as BUILD_ID. @default "" */
  readonly runId?: string;
  /** Timeout policy, as in the validation of a runner. @default none */
  readonly policy?: TimeoutPolicy | 'elsewhere' | undefined;
}

type Policy = NonNullable<JobValidationContext['policy']>;

/** A step at its place in the input. */
interface PlacedStep {
  readonly input: PostStepInput;
  readonly stage: JobStage;
  /** Position within the stage. */
  readonly index: number;
  readonly spec: StepSpec;
}

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
  const { policy = {} } = admission;
  const scope =
    input.repository === undefined ? undefined : resolveScope({ repository: input.repository });
  const times = jobTimes(input, scope, policy);
  const steps = placeSteps(input, scope, admission);
  const checked = steps.map((step, position) => {
    const earlier = steps.slice(0, position).map((other) => other.input.name);
    return checkStep(step, earlier, input, times, policy);
  });
  const errors = [
    ...jobErrors(input, steps.length, times),
    ...checked.flatMap((step) => step.errors),
  ];
  if (errors.length > 0) return { ok: false, errors };
  const { timeoutMs, gracePeriodMs, maxAgeMs } = times;
  return {
    ok: true,
    spec: {
      name: input.name,
      ...omitUndefined({ scope }),
      timeoutMs,
      gracePeriodMs,
      maxAgeMs,
      steps: steps.map(({ spec }) => spec),
      warnings: checked.flatMap((step) => step.warnings),
    },
  };
}

/** Returns the times of a job: its own, those of the policy, or the defaults. */
function jobTimes(input: JobInput, scope: Scope | undefined, policy: Policy): JobTimes {
  const { timeoutCap = MAX_JOB_TIMEOUT, ...byPolicy } =
    policy === 'elsewhere' ? {} : jobTimeoutsFor(policy, scope, input.name);
  const { timeout, gracePeriod, maxAge } = input;
  const asked = toMilliseconds({
    ...JOB_TIMEOUTS,
    ...byPolicy,
    ...omitUndefined({ timeout, gracePeriod, maxAge }),
  });
  const { timeoutCapMs } = toMilliseconds({ timeoutCap });
  return { ...asked, timeoutMs: Math.min(asked.timeoutMs, timeoutCapMs), asked, timeoutCap };
}

function placeSteps(
  job: JobInput,
  scope: Scope | undefined,
  admission: JobValidationContext,
): PlacedStep[] {
  const { policy = {}, workflowId } = admission;
  const { podUnscheduled, podPending, registration } =
    policy === 'elsewhere' ? {} : timeoutsFor(policy, scope);
  const comeUp = omitUndefined({ podUnscheduled, podPending, registration });
  return JOB_STAGES.flatMap((stage) =>
    (job[stage] ?? []).map((step, index) => {
      const input: PostStepInput = step;
      const stepId = stepWorkflowId(workflowId, stage, index + 1);
      return { input, stage, index, spec: stepSpec(job, input, stage, stepId, comeUp, admission) };
    }),
  );
}

/**
 * Checks a step: its own fields, and as the input of a runner.
 * @param earlier - names of the steps before this one
 */
function checkStep(
  { input, stage, index, spec }: PlacedStep,
  earlier: readonly string[],
  job: JobInput,
  times: JobTimes,
  policy: Policy,
): { readonly errors: readonly InputError[]; readonly warnings: readonly string[] } {
  const runner = parseRunnerInput(spec.runner, { workflowId: spec.workflowId, policy });
  const errors = [
    ...duplicateErrors(input, earlier),
    ...stepErrors(input),
    ...untrustedErrors(job, input),
    ...(runner.ok
      ? []
      : runner.errors.map((error) => ({ ...error, field: stepField(error.field) }))),
    ...postShareErrors(job, input, stage, times),
  ];
  // The default grace period needs no warning in each job.
  const isWarned = runner.ok && input.gracePeriod !== undefined;
  return {
    errors: errors.map((error) => ({ ...error, field: `${stage}.${index}.${error.field}` })),
    warnings: isWarned
      ? runner.spec.warnings.map((warning) => `${stage} ${input.name}: ${warning}`)
      : [],
  };
}

/** Names in a step of the fields of a runner's input with which the step is checked. */
const STEP_FIELD: Readonly<Record<string, string>> = {
  'timeouts.jobTimeout': 'timeout',
  'stop.gracePeriod': 'gracePeriod',
};
const stepField = (field: string): string =>
  field.startsWith('pod.') ? 'volumes' : (STEP_FIELD[field] ?? field);
