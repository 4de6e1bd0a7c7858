/** Errors and warnings for jobs that need storage which their worker does not have. Pure. */
import type { InputError } from '../../core/contract/index.ts';
import type { JobSpec } from '../../core/input/job.ts';
import type { StepSpec } from '../../core/input/stepSpec.ts';

const FIX = 'set HOLDFAST_STORE_VOLUME_CLAIM or HOLDFAST_STORE_BUCKET on the worker';

/** Warnings of a job without an artifact store: with a claim for each job, or with no storage. */
const WARNINGS = {
  none: `files in ARTIFACT_DIR and the logs of steps are deleted with their pods, because the worker has no artifact store; ${FIX}`,
  claim: `files in ARTIFACT_DIR are deleted at the end of the job, and the logs of steps with their pods, because the worker has no artifact store; ${FIX}`,
} as const;

/**
 * Returns an error for each step that uses SHARED_DIR. Without an artifact store or a claim of the
 * job, the next step does not get its contents.
 */
export function sharedDirErrors({ steps }: Pick<JobSpec, 'steps'>): InputError[] {
  return steps.filter(refersTo('SHARED_DIR')).map(({ stage, name }): InputError => ({
    code: 'denied',
    field: `${stage} ${name}:`,
    message: `must not use SHARED_DIR, because the worker has no storage that passes it on to the next step; ${FIX}, or HOLDFAST_JOB_CLAIM_SIZE for a claim for each job`,
  }));
}

/**
 * Adds the warning of a job without an artifact store. The warning is also written to the job's own
 * log if a step uses ARTIFACT_DIR.
 */
export function addStorageWarning(spec: JobSpec, storage: 'claim' | 'none'): JobSpec {
  const warning = WARNINGS[storage];
  return {
    ...spec,
    warnings: [...spec.warnings, warning],
    ...(spec.steps.some(refersTo('ARTIFACT_DIR')) ? { loggedWarnings: [warning] } : {}),
  };
}

/** Whether the command or an environment variable of a step refers to a variable of the job. */
const refersTo =
  (variable: string) =>
  ({ runner: { command = [], env = {} } }: StepSpec): boolean =>
    [...command, ...Object.values(env)].some((text) => new RegExp(`\\b${variable}\\b`).test(text));
