import type { AdmitJobInput } from '../../core/activities/index.ts';
import type { InputError, RunnerInput } from '../../core/contract/index.ts';
import { plaintextWarnings } from '../../core/input/plaintext.ts';
import { JOB_ENV } from '../../core/input/jobChecks.ts';
import { parseJobInput, type JobSpec } from '../../core/input/job.ts';
import { runnerLocation } from '../../core/domain/location.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import { invalidInput } from '../shared/invalidInput.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { Compute } from '../ports/compute.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import { addStorageWarning, sharedDirErrors } from './storeUse.ts';

/**
 * Checks a job before any of its steps starts. Each step is checked as its own admission will check
 * it, so what this worker's compute would reject later is reported now.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export async function admitJob(
  { compute, timeoutPolicy: policy, encrypted = false }: ActivityPorts,
  { input, workflowId, runId }: AdmitJobInput,
): Promise<JobSpec> {
  const parsed = parseJobInput(input, { workflowId, runId, policy });
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const { stepStorage: kept = 'none' } = compute;
  const spec =
    kept === 'store'
      ? parsed.spec
      : { ...addStorageWarning(parsed.spec, kept), ...(await claimLocation(compute, parsed.spec)) };
  const faults = spec.steps.flatMap(({ stage, name, runner }): InputError[] => {
    const step = parseRunnerInput(runner, { policy });
    return step.ok
      ? compute
          .validate(step.spec.pod)
          .map((message) => ({ code: 'denied', field: `${stage} ${name}:`, message }))
      : step.errors;
  });
  if (kept === 'none') faults.push(...sharedDirErrors(spec));
  if (faults.length > 0) throw invalidInput(faults);
  return encrypted
    ? spec
    : {
        ...spec,
        warnings: [
          ...spec.warnings,
          ...spec.steps.flatMap(({ stage, name, runner }) =>
            plaintextWarnings(ownEnv(runner)).map((warning) => `${stage} ${name}: ${warning}`),
          ),
        ],
      };
}

/** Returns the location of the job's claim, if it has one. All steps have the same namespace. */
async function claimLocation(
  compute: Compute,
  { steps }: JobSpec,
): Promise<Pick<JobSpec, 'claimLocation'>> {
  if (compute.stepStorage !== 'claim') return {};
  const served = await withClusterErrors('read the location', async () => await compute.location());
  return { claimLocation: runnerLocation(served, steps[0]?.runner.namespace) };
}

/**
 * Returns the environment variables of a step without those that the job sets, which are not
 * secret.
 */
function ownEnv({ env = {} }: RunnerInput): RunnerInput {
  return { env: Object.fromEntries(Object.entries(env).filter(([name]) => !JOB_ENV.has(name))) };
}
