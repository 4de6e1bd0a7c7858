/**
 * Reads GitHub's `workflow_job` events. Their content is untrusted, even with a valid signature.
 */
import { z } from 'zod';
import { normalizeLabels } from '../../../../activities/ciServers/normalizeLabels.ts';
import type { CiServerKind } from '../../../../core/domain/ciServerKind.ts';
import type { RunnerJobEvent, JobEvent } from '../../../../core/contract/index.ts';
import { OUR_RUNNER_NAME, type JobDelivery } from '../../jobDelivery.ts';
import { repositoryField, truncated, time } from '../deliveryFields.ts';

/** Differences between servers that send `workflow_job` events in GitHub's form. */
export interface WorkflowJobRules {
  readonly server: CiServerKind;
  /** Whether `created_at` is the time at which the job was queued. */
  readonly createdWhenQueued: boolean;
  /** Returns the number of the job's attempt, from 1, or undefined if the event cannot have it. */
  attempt(job: {
    readonly runAttempt: number | null | undefined;
    readonly runnerId: number | null | undefined;
  }): number | undefined;
}

/** Rules of GitHub. */
export const GITHUB_JOBS: WorkflowJobRules = {
  server: 'github',
  createdWhenQueued: true,
  attempt: ({ runAttempt }) => (runAttempt === 0 ? undefined : (runAttempt ?? 1)),
};

/** Result of reading a `workflow_job` event. */
export type WorkflowJob =
  | { readonly kind: 'job'; readonly delivery: JobDelivery }
  | { readonly kind: 'otherAction' | 'expired' | 'malformed' };

/**
 * Maximum age of a delivery (ms). GitHub can redeliver for three days
 * (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
 */
const MAX_DELIVERY_AGE_MS = 4 * 24 * 3_600_000;

const workflowJobEvent = z.object({
  action: z.string(),
  workflow_job: z.object({
    id: z.int().positive(),
    run_id: z.int().positive().nullish().catch(undefined),
    run_attempt: z.int().nonnegative().nullish(),
    name: truncated(200).nullish(),
    labels: z.array(z.string()).nullish(),
    runner_id: z.int().nonnegative().nullish(),
    runner_name: z.string().nullish(),
    conclusion: truncated(40).nullish(),
    created_at: time,
    started_at: time,
    completed_at: time,
  }),
  /**
   * Time at which the job's environment was approved. The job was queued then, maybe days after its
   * creation.
   */
  deployment: z.object({ updated_at: time }).nullish().catch(undefined),
  repository: repositoryField,
  enterprise: z.object({ slug: truncated(100) }).nullish(),
});
type Body = z.output<typeof workflowJobEvent>;
type Job = Body['workflow_job'];

const ACTIONS = [
  'queued',
  'in_progress',
  'completed',
] as const satisfies readonly RunnerJobEvent['action'][];
type Action = (typeof ACTIONS)[number];

/**
 * Reads the body of a `workflow_job` event. A signature never expires and covers only the body, so
 * an event whose latest time is more than four days ago is rejected: no server sends it again. An
 * event without the time at which the job was queued happened now.
 * @param nowMs - used for a time that is missing from the event
 */
export function parseWorkflowJob(
  body: unknown,
  nowMs: number,
  rules: WorkflowJobRules = GITHUB_JOBS,
): WorkflowJob {
  const parsed = workflowJobEvent.safeParse(body);
  if (!parsed.success) return { kind: 'malformed' };
  const { workflow_job: job, deployment, enterprise } = parsed.data;
  const latest = laterOf(job.created_at, job.started_at, job.completed_at, deployment?.updated_at);
  const action = ACTIONS.find((known) => known === parsed.data.action);
  const isDated = action !== 'queued' || rules.createdWhenQueued;
  if (isDated && latest !== undefined && nowMs - latest > MAX_DELIVERY_AGE_MS)
    return { kind: 'expired' };
  if (action === undefined) return { kind: 'otherAction' };
  const runAttempt = rules.attempt({ runAttempt: job.run_attempt, runnerId: job.runner_id });
  if (runAttempt === undefined) return { kind: 'malformed' };
  const name = job.runner_name ?? '';
  const event = jobEvent(action, parsed.data, nowMs, { rules, runAttempt });
  const runner = OUR_RUNNER_NAME.test(name)
    ? { name, event: runnerEvent(event, job, name) }
    : undefined;
  const delivery: JobDelivery = {
    event,
    ciServer: rules.server,
    ...(enterprise && { enterprise: enterprise.slug }),
    ...(runner && { runner }),
    ...durations(action, job, rules),
  };
  return { kind: 'job', delivery };
}

function laterOf(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((at) => at !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function jobEvent(
  action: Action,
  { workflow_job: job, repository, deployment }: Body,
  nowMs: number,
  { rules, runAttempt }: { rules: WorkflowJobRules; runAttempt: number },
): JobEvent {
  const at = {
    queued: rules.createdWhenQueued ? laterOf(job.created_at, deployment?.updated_at) : undefined,
    in_progress: job.started_at,
    completed: job.completed_at,
  }[action];
  return {
    action,
    jobId: String(job.id),
    runAttempt,
    repository: repository.full_name,
    labels: normalizeLabels(rules.server, job.labels ?? []),
    at: at ?? nowMs,
    ...(job.run_id && { runId: String(job.run_id) }),
    ...(job.runner_name && { runnerName: job.runner_name.slice(0, 100) }),
    ...(job.conclusion && { conclusion: job.conclusion }),
  };
}

function runnerEvent(
  { action, jobId, runAttempt, at, repository }: JobEvent,
  job: Job,
  runnerName: string,
): RunnerJobEvent {
  const event: RunnerJobEvent = { action, jobId, runAttempt, at, repository, runnerName };
  // null or 0 until a runner is assigned
  if (job.runner_id) event.runnerId = String(job.runner_id);
  if (job.name) event.jobName = job.name;
  if (job.conclusion) event.conclusion = job.conclusion;
  return event;
}

function durations(
  action: Action,
  { created_at: queued, started_at: started, completed_at: completed, runner_id: runner }: Job,
  { createdWhenQueued }: WorkflowJobRules,
): Pick<JobDelivery, 'startupMs' | 'executionMs'> {
  if (
    createdWhenQueued &&
    action === 'in_progress' &&
    queued !== undefined &&
    started !== undefined
  )
    return { startupMs: Math.max(0, started - queued) };
  if (action === 'completed' && runner && started !== undefined && completed !== undefined)
    return { executionMs: Math.max(0, completed - started) };
  return {};
}
