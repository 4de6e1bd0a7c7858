import type { AdmittedDefinition } from '../../core/activities/index.ts';
import { jobDefinitionId, type JobDefinitionInput } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { jobOf } from '../../core/domain/declaredJob.ts';
import { parseJobDefinition } from '../../core/input/jobDefinition.ts';
import { credentialFault, invalid } from '../runner/admit.ts';
import { admitJob } from '../job/admitJob.ts';
import type { ActivityPorts } from '../ports.ts';
import { nextStart, scheduleFault } from '../runnerSet/schedules.ts';

/** @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field */
export function admitDefinition(
  ports: ActivityPorts,
  { input, workflowId }: { readonly input: unknown; readonly workflowId: string },
): AdmittedDefinition {
  const parsed = parseJobDefinition(input, {
    checkSchedule: scheduleFault,
    policy: ports.timeoutPolicy,
  });
  if (!parsed.ok) throw invalid(parsed.errors);
  const declaration = input as JobDefinitionInput;
  const { warnings: _told, ...spec } = parsed.spec;
  const { repository, name, credential, pullRequest } = spec;
  const id = jobDefinitionId(repository, name);
  if (id !== workflowId)
    throw invalid([
      {
        field: 'repository, name',
        message: `make this the job ${id}, not ${workflowId}: send it there`,
      },
    ]);
  admitJob(ports, { input: jobOf(declaration), workflowId, runId: '' });
  // Only the files of a pull request have to be asked for; that a report cannot be made is no reason to refuse.
  const fault =
    pullRequest?.paths === undefined
      ? undefined
      : credentialFault(ports.ciServers, {
          credential,
          scope: { kind: 'repository', name: repository },
        });
  if (fault !== undefined)
    throw invalid([
      {
        field: 'credential:',
        message: `${fault}; it is asked which files a pull request changes (on.pull_request.paths)`,
      },
    ]);
  return { spec, declaration, ...defined({ nextAtMs: nextStart(spec.schedules, Date.now()) }) };
}
