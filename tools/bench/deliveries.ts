/** Deliveries of GitHub's webhook, as a client that sends many of them at once sees them answered. */
import { createHmac, randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { mapConcurrently } from './concurrency.ts';

/** One delivery, made ready before anything is measured. */
interface Delivery {
  readonly body: string;
  readonly signature: string;
}

/** `queued` events of so many jobs, like that of a real job. @param payload of a `workflow_job` event. @param firstId of the first job */
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
 * Sends all, so many at a time, each on a connection of its own that is kept.
 * @returns how long each took to be answered, in ms, and all of them together
 * @throws Error when one is not accepted
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
        throw new Error(`a delivery was answered ${answer.statusCode}: ${text}`);
      return performance.now() - sentAt;
    });
    return { tookMs, allMs: performance.now() - startedAt };
  } finally {
    await pool.close();
  }
}
