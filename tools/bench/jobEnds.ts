import type { StartedRunner } from './runners.ts';
import type { BenchEnvironment } from './world.ts';
import type { RegistrationWatch } from './registrations.ts';

/** Times of the end of a job, and of the deletion of its runner's pod and registration. */
export interface JobEnd {
  /** End of the job by the clock of the CI server (ms since the epoch). */
  readonly finishedAt: number;
  /** Time when both pod and registration no longer existed (ms since the epoch). */
  readonly goneAt: number;
}

/**
 * Combines the times of the CI server, of the pods' watch and of the registrations' watch.
 * @throws Error if one of the times is missing
 */
export async function jobEnds(
  { simulator, agent }: BenchEnvironment,
  registrations: RegistrationWatch,
  runners: readonly StartedRunner[],
): Promise<Map<string, JobEnd>> {
  const jobs = new Map(
    (await simulator.jobs()).map((job) => [
      (job.runner_name ?? '').replace(/-[0-9a-f]{10}$/, ''),
      job,
    ]),
  );
  return new Map(
    runners.map(({ workflowId, name }): [string, JobEnd] => {
      const job = jobs.get(name);
      if (!job?.runner_name || job.completed_at === null)
        throw new Error(`runner ${name} has no finished job`);
      const finishedAt = Date.parse(job.completed_at);
      const podGoneAt = agent.of(workflowId).gone;
      const registrationGoneAt = registrations.removedAt(job.runner_name, finishedAt);
      if (podGoneAt === undefined || registrationGoneAt === undefined)
        throw new Error(
          `runner ${name} is not deleted completely: pod ${podGoneAt}, registration ${registrationGoneAt}`,
        );
      return [workflowId, { finishedAt, goneAt: Math.max(podGoneAt, registrationGoneAt) }];
    }),
  );
}
