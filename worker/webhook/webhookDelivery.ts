/** What a delivery of GitHub's webhook says, in the words of the workflows. Its content is untrusted, signature or not. */
import { z } from 'zod';
import type { RunnerJobEvent, JobEvent } from '../../core/contract/index.ts';
import { repositoryField, truncated, MAX_DELIVERY_AGE_MS, time } from './deliveryFields.ts';

/** What a delivery asks for. */
export type Delivery =
  | { readonly kind: 'job'; readonly news: JobDelivery }
  | { readonly kind: 'ignored'; readonly why: 'other_event' | 'other_action' }
  | { readonly kind: 'expired' | 'malformed' };

/** One event of one job, for the set that has to serve it and for the runner that runs it. */
export interface JobDelivery {
  readonly event: JobEvent;
  /** Id of the workflow run that the job is of. */
  readonly run?: number;
  /** Slug of the enterprise that the repository's owner belongs to. */
  readonly enterprise?: string;
  /** The runner, where it may be one of ours. */
  readonly runner?: { readonly name: string; readonly event: RunnerJobEvent };
  /** From queued to started, in ms; with `in_progress`. */
  readonly startupTimeoutMs?: number;
  /** From started to completed, in ms; with `completed`, where a runner ran it. */
  readonly executionMs?: number;
}

const workflowJobEvent = z.object({
  action: z.string(),
  workflow_job: z.object({
    id: z.int().positive(),
    run_id: z.int().positive().nullish().catch(undefined),
    run_attempt: z.int().positive().nullish(),
    name: truncated(200).nullish(),
    labels: z.array(z.string()).nullish(),
    runner_id: z.int().nonnegative().nullish(),
    runner_name: z.string().nullish(),
    conclusion: truncated(40).nullish(),
    created_at: time,
    started_at: time,
    completed_at: time,
  }),
  /** Of a job whose environment had to be approved: it was queued then, and made maybe days before. */
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
/** Every name that Holdfast gives a runner; another one is no runner of ours, and must not get into a query. */
const OUR_RUNNER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/**
 * Reads a delivery whose signature was good. The signature is good for ever, and for a body alone: one whose latest time is over four days old is none that
 * GitHub sends.
 * @param nowMs - stands for a time that the event should have and has not
 */
export function parseDelivery(eventName: string, body: unknown, nowMs: number): Delivery {
  if (eventName !== 'workflow_job') return { kind: 'ignored', why: 'other_event' };
  const parsed = workflowJobEvent.safeParse(body);
  if (!parsed.success) return { kind: 'malformed' };
  const { workflow_job: job, deployment, enterprise } = parsed.data;
  const latest = laterOf(job.created_at, job.started_at, job.completed_at, deployment?.updated_at);
  if (latest !== undefined && nowMs - latest > MAX_DELIVERY_AGE_MS) return { kind: 'expired' };
  const action = ACTIONS.find((known) => known === parsed.data.action);
  if (action === undefined) return { kind: 'ignored', why: 'other_action' };
  const name = job.runner_name ?? '';
  const event = jobEvent(action, parsed.data, nowMs);
  const runner = OUR_RUNNER_NAME.test(name)
    ? { name, event: runnerEvent(event, job, name) }
    : undefined;
  const news: JobDelivery = {
    event,
    ...(job.run_id && { run: job.run_id }),
    ...(enterprise && { enterprise: enterprise.slug }),
    ...(runner && { runner }),
    ...durations(action, job),
  };
  return { kind: 'job', news };
}

function laterOf(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((at) => at !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function jobEvent(
  action: Action,
  { workflow_job: job, repository, deployment }: Body,
  nowMs: number,
): JobEvent {
  const at = {
    queued: laterOf(job.created_at, deployment?.updated_at),
    in_progress: job.started_at,
    completed: job.completed_at,
  }[action];
  return {
    action,
    jobId: job.id,
    runAttempt: job.run_attempt ?? 1,
    repository: repository.full_name,
    labels: job.labels ?? [],
    at: at ?? nowMs,
    ...(job.runner_name && { runnerName: job.runner_name.slice(0, 100) }),
    ...(job.conclusion && { conclusion: job.conclusion }),
  };
}

function runnerEvent(
  { action, jobId, runAttempt, at }: JobEvent,
  job: Job,
  runnerName: string,
): RunnerJobEvent {
  const event: RunnerJobEvent = { action, jobId, runAttempt, at, runnerName };
  if (job.runner_id) event.runnerId = job.runner_id; // GitHub says null or 0 until a runner is assigned
  if (job.name) event.jobName = job.name;
  if (job.conclusion) event.conclusion = job.conclusion;
  return event;
}

function durations(
  action: Action,
  { created_at: queued, started_at: started, completed_at: completed, runner_id: runner }: Job,
): Pick<JobDelivery, 'startupTimeoutMs' | 'executionMs'> {
  if (action === 'in_progress' && queued !== undefined && started !== undefined)
    return { startupTimeoutMs: Math.max(0, started - queued) };
  if (action === 'completed' && runner && started !== undefined && completed !== undefined)
    return { executionMs: Math.max(0, completed - started) };
  return {};
}
