/** Checks of a job whose worker has no artifact store. Pure. */
import type { InputError } from '../../core/contract/index.ts';
import type { JobSpec, StepSpec } from '../../core/input/job.ts';

const FIX = 'set HOLDFAST_STORE_VOLUME_CLAIM or HOLDFAST_STORE_BUCKET on the worker';

/** Warning of a job whose steps have an ARTIFACT_DIR that nothing stores. */
export const NO_STORE_WARNING = `files in ARTIFACT_DIR and the logs of steps are deleted with their pods, because the worker has no artifact store; ${FIX}`;

/**
 * Returns an error for each step that uses SHARED_DIR. Without an artifact store its contents do
 * not reach the next step.
 */
export function sharedDirErrors({ steps }: Pick<JobSpec, 'steps'>): InputError[] {
  return steps.filter(names('SHARED_DIR')).map(({ stage, name }): InputError => ({
    code: 'denied',
    field: `${stage} ${name}:`,
    message: `must not use SHARED_DIR, because the worker has no artifact store that hands it from step to step; ${FIX}`,
  }));
}

/**
 * Adds the warnings of a job without an artifact store. They are also written to the job's own log
 * if a step uses ARTIFACT_DIR.
 */
export function withoutStore(spec: JobSpec): JobSpec {
  return {
    ...spec,
    warnings: [...spec.warnings, NO_STORE_WARNING],
    ...(spec.steps.some(names('ARTIFACT_DIR')) ? { loggedWarnings: [NO_STORE_WARNING] } : {}),
  };
}

/** Whether the command or an environment variable of a step refers to a variable of the job. */
const names =
  (variable: string) =>
  ({ runner: { command = [], env = {} } }: StepSpec): boolean =>
    [...command, ...Object.values(env)].some((text) => new RegExp(`\\b${variable}\\b`).test(text));
