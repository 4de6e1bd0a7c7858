/** Checks the size of a job's input and combinations of its fields. Pure. */
import {
  JOB_STAGES,
  STEP_TIMEOUTS,
  type InputError,
  type JOB_TIMEOUTS,
  type JobInput,
  type JobStage,
  type StepInput,
} from '../contract/index.ts';
import { formatDuration, type Milliseconds } from '../domain/duration.ts';
import { UNTRUSTED_VOLUME_SOURCES, volumeSources } from '../domain/untrustedJobs.ts';
import { postShareError } from './postShare.ts';

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

/** Checks the size and the nesting of an input that is often converted to JSON. */
export function inputSizeError(raw: unknown): InputError | undefined {
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

/** Times of a job, with its timeout within the cap. */
export interface JobTimes extends Milliseconds<typeof JOB_TIMEOUTS> {
  /** Times before the cap was applied. */
  readonly asked: Milliseconds<typeof JOB_TIMEOUTS>;
  /** Maximum timeout, a duration string. */
  readonly timeoutCap: string;
}

/** Returns the errors of the job as a whole. */
export function jobErrors(
  { timeout }: JobInput,
  steps: number,
  { asked, timeoutCap, timeoutMs, maxAgeMs }: JobTimes,
): InputError[] {
  const errors: InputError[] = [];
  if (steps > MAX_STEPS)
    errors.push({
      code: 'out_of_range',
      field: JOB_STAGES.join(', '),
      message: `have ${steps} steps in all, and a job may have ${MAX_STEPS}: do more in one step`,
    });
  if (asked.timeoutMs > timeoutMs && timeout !== undefined)
    errors.push({
      code: 'out_of_range',
      field: 'timeout',
      message: `is over the cap of ${timeoutCap}; a job may only lower it (the worker's HOLDFAST_TIMEOUTS names jobs with a higher cap)`,
    });
  if (maxAgeMs < timeoutMs)
    errors.push({
      code: 'conflict',
      field: 'maxAge',
      message: `is shorter than the job's timeout of ${formatDuration(timeoutMs)}: raise it, or lower that`,
    });
  return errors;
}

/** Returns the error of a step that has the name of an earlier one. */
export function duplicateErrors({ name }: StepInput, earlier: readonly string[]): InputError[] {
  return earlier.includes(name)
    ? [{ code: 'duplicate', field: 'name', message: `is used twice: "${name}"` }]
    : [];
}

/** Returns the error of a step whose stop leaves no time for the stage `post`. */
export function postShareErrors(
  { post = [] }: JobInput,
  { gracePeriod = STEP_TIMEOUTS.gracePeriod }: StepInput,
  stage: JobStage,
  { gracePeriodMs }: JobTimes,
): InputError[] {
  if (stage === 'post' || post.length === 0) return [];
  const message = postShareError(gracePeriod, gracePeriodMs);
  return message === undefined ? [] : [{ code: 'conflict', field: 'gracePeriod', message }];
}

/** Returns the errors of combinations of a step's fields. */
export function stepErrors({ commands, command, env = {}, volumes = [] }: StepInput): InputError[] {
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
export function untrustedErrors(
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
