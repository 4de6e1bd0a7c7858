/** The set's look at the CI server's own list of jobs, in case an event was lost. */
import { cancellationSignal, getClient } from '@temporalio/activity';
import { setWorkflowId } from '../../core/contract/index.ts';
import type { LookForJobsInput } from '../../core/calls/index.ts';
import type { CiJob, CiJobs } from '../../core/domain/ciServer.ts';
import { chooseSet } from '../../core/domain/jobRouting.ts';
import { workflowIdOfRunner } from '../../core/domain/setRunnerNames.ts';
import { refusal } from '../refusals.ts';
import { withHeartbeats } from '../heartbeats.ts';
import type { ActivityPorts } from '../ports.ts';
import { listCovers } from './listCovers.ts';

export async function lookForQueuedJobs({ ciServers }: ActivityPorts, input: LookForJobsInput): Promise<CiJobs | null> {
  const { scope, credential, labels } = input;
  try {
    const seen = await withHeartbeats('list of queued jobs', async () => await ciServers.get(credential).queuedJobs?.(scope, labels, cancellationSignal()));
    return seen === undefined ? null : { ...seen, jobs: await jobsOf(input, seen.jobs) };
  } catch (error) {
    throw refusal(error, { credentialsRetryMs: 60_000 }, false);
  }
}

/** Of these jobs, those that are this set's to serve when all running sets are looked at, and those that its own runners run. */
async function jobsOf({ set, taskQueue, scope }: LookForJobsInput, jobs: readonly CiJob[]): Promise<CiJob[]> {
  if (jobs.length === 0) return [];
  const covers = await listCovers(getClient(), taskQueue);
  const sets = [...covers].flatMap(([workflowId, cover]) => (cover === undefined ? [] : [{ workflowId, cover }]));
  const enterprise = scope.kind === 'enterprise' ? scope.name : undefined;
  return jobs.filter((job) => {
    if (job.runnerName !== undefined && workflowIdOfRunner(set, job.runnerName) !== undefined) return true;
    return chooseSet({ repository: job.repository, labels: [...job.labels] }, enterprise, sets)?.workflowId === setWorkflowId(set);
  });
}
