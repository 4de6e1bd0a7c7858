import { createHmac, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { startWorkerProcess, type WorkerProcess } from './workerProcess.ts';

const CLI = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));
const WEBHOOK_SECRET = 'shh';

/** `holdfast webhook` as users run it, with a minimal environment. */
export function startWebhookProcess(
  temporal: string,
  taskQueue: string,
  more: Readonly<Record<string, string>> = {},
): WorkerProcess {
  const settings = {
    TEMPORAL_ADDRESS: temporal,
    HOLDFAST_TASK_QUEUE: taskQueue,
    HOLDFAST_WEBHOOK_SECRET: WEBHOOK_SECRET,
    HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
    HOLDFAST_WEBHOOK_ADDRESS: '127.0.0.1:0',
  };
  return startWorkerProcess({ ...settings, ...more }, [CLI, 'webhook']);
}

/**
 * Sends a signed delivery over HTTP.
 * @returns the status of the response
 */
export async function deliverSigned(
  url: URL,
  event: object,
  id: string = randomUUID(),
): Promise<number> {
  const body = JSON.stringify(event);
  const signature = `sha256=${createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')}`;
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'workflow_job',
    'x-github-delivery': id,
    'x-hub-signature-256': signature,
  };
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.status;
}
