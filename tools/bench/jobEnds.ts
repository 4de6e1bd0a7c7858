import type { StartedRunner } from './runners.ts';
import type { BenchEnvironment } from './world.ts';
import type { RegistrationWatch } from './registrations.ts';

/** A runner's last moments: its job finished, by the CI server's clock, and when its pod and its registration were both gone. */
export interface JobEnd {
  /** ms since the epoch. */
  readonly finishedAt: number;
  readonly goneAt: number;
}

/** Puts together what the CI server, the pods' watch and the registrations' watch saw. @throws Error when something of it is missing */
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
        throw new Error(`no finished job of runner ${name} is known`);
      const finishedAt = Date.parse(job.completed_at);
      const podGoneAt = agent.of(workflowId).gone;
      const registrationGoneAt = registrations.removedAt(job.runner_name, finishedAt);
      if (podGoneAt === undefined || registrationGoneAt === undefined)
        throw new Error(
          `runner ${name} is not all gone: pod ${podGoneAt}, registration ${registrationGoneAt}`,
        );
      return [workflowId, { finishedAt, goneAt: Math.max(podGoneAt, registrationGoneAt) }];
    }),
  );
}
