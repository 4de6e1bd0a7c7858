/**
 * A worker process for the process compute: creates a pod, requests its deletion if configured,
 * prints the result in one JSON line, and runs until it is killed.
 */
import { existsSync } from 'node:fs';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import { untilSeen } from './until.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

export interface ProcessWorkerJob {
  readonly stateDir: string;
  readonly request: PodRequest;
  readonly registration?: Registration;
  /** Requests the deletion as soon as the runner has created this file. */
  readonly deletion?: { readonly onceThereIs: string; readonly gracePeriodSeconds: number };
}

const job = JSON.parse(process.env['JOB'] ?? '') as ProcessWorkerJob;
const compute = createProcessCompute({ stateDir: job.stateDir, anyCommand: true });
const pod = await compute.createPod(job.request, job.registration);
if (job.deletion !== undefined) {
  const { onceThereIs, gracePeriodSeconds } = job.deletion;
  await untilSeen('the runner is ready', async () => existsSync(onceThereIs), Boolean);
  await compute.deletePod(pod, { gracePeriodSeconds });
}
process.stdout.write(`${JSON.stringify(pod)}\n`);
process.stdin.resume();
setInterval(() => undefined, 60_000);
