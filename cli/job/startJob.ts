/** Starts a job from a file. */
import { JOB_WORKFLOW, SEARCH_ATTRIBUTES, type JobInput } from '../../core/contract/index.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { parseJobInput, type JobSpec } from '../../core/input/job.ts';
import { generateName } from '../shared/generateName.ts';
import { formatFieldError, readInputFile, displayPath } from '../runner/runnerFlags.ts';
import type { StartedRunner } from '../runner/startRunner.ts';
import { CliError } from '../shared/exit.ts';
import type { Session } from '../shared/session.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';
import { jobError } from './jobClient.ts';

/** Validated job, before Temporal is called. */
export interface JobPlan {
  readonly workflowId: string;
  readonly input: JobInput;
  readonly spec: JobSpec;
}

/**
 * Reads the file and validates it with the parser of the worker.
 * @param id - workflow ID.
 * @default a generated one
 * @throws CliError `usage`, `invalid_input`
 */
export async function planJob(path: string, id?: string): Promise<JobPlan> {
  const raw = await readInputFile(
    path,
    '{"name": "web", "test": [{"name": "unit", "commands": "make test"}]}',
  );
  const workflowId =
    id ?? `job-${typeof raw['name'] === 'string' ? `${raw['name']}-` : ''}${generateName()}`;
  const parsed = parseJobInput(raw, { workflowId, policy: 'elsewhere' });
  if (parsed.ok) return { workflowId, input: raw as unknown as JobInput, spec: parsed.spec };
  const [first] = parsed.errors;
  if (parsed.errors.length === 1 && first !== undefined)
    throw new CliError('invalid_input', `${displayPath(path)}: ${formatFieldError(first)}`);
  throw new CliError(
    'invalid_input',
    `the job in ${displayPath(path)} is invalid; nothing was started`,
    { fields: parsed.errors },
  );
}

/**
 * Starts the workflow of a job.
 * @throws CliError `conflict` if a job with this ID is running, `usage`, `unreachable`
 */
export async function startJob(
  session: Session,
  { workflowId, input, spec }: JobPlan,
): Promise<StartedRunner> {
  const { name, scope, steps } = spec;
  try {
    const handle = await session.attempt((client) =>
      client.workflow.start(JOB_WORKFLOW, {
        workflowId,
        taskQueue: session.settings.taskQueue,
        args: [input],
        workflowIdConflictPolicy: 'FAIL',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        staticSummary: workflowSummary(`job ${name}: ${steps.map((step) => step.name).join(', ')}`),
        typedSearchAttributes: [
          { key: SEARCH_ATTRIBUTES.name, value: name },
          ...(scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: scope.name }]),
        ],
        priority: { fairnessKey: fairnessKey(scope?.name ?? name) },
      }),
    );
    return { workflowId, runId: handle.firstExecutionRunId, attached: false };
  } catch (error) {
    throw jobError(error, session, workflowId);
  }
}
