/** Signed deliveries at a constant rate, sent without waiting for the responses to earlier ones. */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { Pool } from 'undici';
import { jobEventsSignal, type JobEvent } from '../../core/contract/index.ts';
import { WEBHOOK_SECRET } from './world.ts';

const ACTIONS = [
  'queued',
  'in_progress',
  'completed',
] as const satisfies readonly JobEvent['action'][];
/** Padding to the size of GitHub's deliveries. */
const PADDING = 'x'.repeat(6_500);
const TICK_MS = 10;
/** Number of connections, above the receiver's limit of deliveries in progress. */
const CONNECTIONS = 1_500;

/** Responses to the deliveries. */
export interface Offered {
  /** Job and action of each accepted delivery. */
  readonly accepted: readonly string[];
  /** Response time of each accepted delivery (ms). */
  readonly acceptedMs: readonly number[];
  /** Number of deliveries that were not accepted. */
  readonly others: number;
  /** Number of deliveries by status; 0: no response. */
  readonly statuses: Readonly<Record<number, number>>;
}

/**
 * Sends the three events of each job, one after the other. A runner of the set runs each job.
 * @param set - name of the set, which is also the label of the jobs
 */
export async function offer({
  url,
  set,
  firstJob,
  perSecond,
  seconds,
}: {
  url: URL;
  set: string;
  firstJob: number;
  perSecond: number;
  seconds: number;
}): Promise<Offered> {
  const pool = new Pool(url.origin, { connections: CONNECTIONS });
  const accepted: string[] = [];
  const acceptedMs: number[] = [];
  const statuses: Record<number, number> = {};
  const send = async (number: number): Promise<void> => {
    const action = ACTIONS[number % ACTIONS.length] ?? 'queued';
    const jobId = firstJob + Math.floor(number / ACTIONS.length);
    const body = bodyOf(set, jobId, action);
    const signature = `sha256=${createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')}`;
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'workflow_job',
      'x-github-delivery': randomUUID(),
      'x-hub-signature-256': signature,
    };
    const sentAt = performance.now();
    const status = await pool.request({ method: 'POST', path: url.pathname, headers, body }).then(
      async (answer) => (await answer.body.dump(), answer.statusCode),
      () => 0,
    );
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status !== 202) return;
    accepted.push(`${jobId} ${action}`);
    acceptedMs.push(performance.now() - sentAt);
  };
  const startedAt = performance.now();
  const sending: Promise<void>[] = [];
  for (let number = 0; number < perSecond * seconds; await delay(TICK_MS)) {
    const due = Math.min(
      perSecond * seconds,
      Math.ceil(((performance.now() - startedAt) / 1_000) * perSecond),
    );
    for (; number < due; number++) sending.push(send(number));
  }
  await Promise.all(sending);
  await pool.close();
  return { accepted, acceptedMs, others: sending.length - accepted.length, statuses };
}

function bodyOf(set: string, id: number, action: JobEvent['action']): string {
  const at = new Date().toISOString();
  const started =
    action === 'queued'
      ? { runner_id: null, runner_name: null }
      : {
          started_at: at,
          runner_id: id,
          runner_name: `${set}-${id.toString(36).padStart(10, 'a')}-0a1b2c3d4e`,
        };
  const ended = action === 'completed' ? { completed_at: at, conclusion: 'success' } : {};
  return JSON.stringify({
    action,
    workflow_job: {
      id,
      run_attempt: 1,
      name: 'build',
      labels: ['self-hosted', set],
      created_at: at,
      ...started,
      ...ended,
      padding: PADDING,
    },
    repository: { full_name: 'acme/app' },
  });
}

/** Returns job and action of each event in the history of a set. */
export async function deliveredJobEvents(
  client: Client,
  workflowId: string,
): Promise<ReadonlySet<string>> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const delivered = new Set<string>();
  for (const { workflowExecutionSignaledEventAttributes: signal } of events ?? []) {
    if (signal?.signalName !== jobEventsSignal.name) continue;
    const { events: jobs } = JSON.parse(
      Buffer.from(signal.input?.payloads?.[0]?.data ?? '').toString(),
    ) as { events: JobEvent[] };
    for (const { jobId, action } of jobs) delivered.add(`${jobId} ${action}`);
  }
  return delivered;
}
