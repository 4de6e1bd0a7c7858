/** Sends many webhook deliveries at once, and measures the response times. */
import { createHmac, randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { mapConcurrently } from './concurrency.ts';

/** A delivery, prepared before the measurement. */
interface Delivery {
  readonly body: string;
  readonly signature: string;
}

/**
 * Creates signed deliveries of `queued` events.
 * @param payload - payload of a real `workflow_job` event, used as template
 * @param count - number of jobs
 * @param firstId - ID of the first job
 */
export function queuedDeliveries(
  payload: object,
  count: number,
  firstId: number,
  secret: string,
): Delivery[] {
  const { workflow_job: job } = payload as { workflow_job: object };
  const createdAt = new Date().toISOString();
  return Array.from({ length: count }, (_none, index) => {
    const body = JSON.stringify({
      ...payload,
      action: 'queued',
      workflow_job: {
        ...job,
        id: firstId + index,
        status: 'queued',
        conclusion: null,
        created_at: createdAt,
        runner_id: null,
        runner_name: null,
      },
    });
    return { body, signature: `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` };
  });
}

/**
 * Sends all deliveries, `atOnce` at a time, each on a separate keep-alive connection.
 * @returns the response time of each delivery, and the total time (ms)
 * @throws Error if a delivery is not accepted
 */
export async function deliver(
  url: URL,
  deliveries: readonly Delivery[],
  atOnce: number,
): Promise<{ tookMs: number[]; allMs: number }> {
  const pool = new Pool(url.origin, { connections: atOnce });
  try {
    const startedAt = performance.now();
    const tookMs = await mapConcurrently(deliveries, atOnce, async ({ body, signature }) => {
      const sentAt = performance.now();
      const headers = {
        'content-type': 'application/json',
        'x-github-event': 'workflow_job',
        'x-github-delivery': randomUUID(),
        'x-hub-signature-256': signature,
      };
      const answer = await pool.request({ method: 'POST', path: url.pathname, headers, body });
      const text = await answer.body.text();
      if (answer.statusCode !== 202)
        throw new Error(`delivery rejected: ${answer.statusCode}: ${text}`);
      return performance.now() - sentAt;
    });
    return { tookMs, allMs: performance.now() - startedAt };
  } finally {
    await pool.close();
  }
}
