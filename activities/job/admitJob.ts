import type { AdmitJobInput } from '../../core/activities/index.ts';
import type { InputError, RunnerInput } from '../../core/contract/index.ts';
import { plaintextWarnings } from '../../core/input/plaintext.ts';
import { JOB_ENV, parseJobInput, type JobSpec } from '../../core/input/job.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import { invalidInput } from '../shared/invalidInput.ts';
import type { ActivityPorts } from '../ports.ts';
import { sharedDirErrors, withoutStore } from './storeUse.ts';

/**
 * Checks a job before any of its steps starts. Each step is checked as its own admission will check
 * it, so what this worker's compute would reject later is reported now.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitJob(
  { compute, timeoutPolicy: policy, encrypted = false }: ActivityPorts,
  { input, workflowId, runId }: AdmitJobInput,
): JobSpec {
  const parsed = parseJobInput(input, { workflowId, runId, policy });
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const hasStore = compute.hasArtifactStore === true;
  const spec = hasStore ? parsed.spec : withoutStore(parsed.spec);
  const faults = spec.steps.flatMap(({ stage, name, runner }): InputError[] => {
    const step = parseRunnerInput(runner, { policy });
    return step.ok
      ? compute
          .validate(step.spec.pod)
          .map((message) => ({ code: 'denied', field: `${stage} ${name}:`, message }))
      : step.errors;
  });
  if (!hasStore) faults.push(...sharedDirErrors(spec));
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

/**
 * Returns the environment variables of a step without those that the job sets, which are not
 * secret.
 */
function ownEnv({ env = {} }: RunnerInput): RunnerInput {
  return { env: Object.fromEntries(Object.entries(env).filter(([name]) => !JOB_ENV.has(name))) };
}
