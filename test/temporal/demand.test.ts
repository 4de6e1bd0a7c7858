import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { notifySet } from '../support/setCommands.ts';
import { SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { until } from '../support/until.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
  type WorkerProcess,
} from '../support/workerProcess.ts';

const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));
const JOBS = 20;

await describeWithLab('from webhooks to runners', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  let simulator: Simulator | undefined;
  let connection: Connection | undefined;

  afterEach(async () => {
    await killWorkerProcesses();
    await simulator?.stop();
    await connection?.close();
  });

  test('events lost, duplicated and reordered, and their receiver killed: every job runs once, and nothing is left', async () => {
    const name = `fleet-${randomUUID().slice(0, 8)}`;
    const port = await freePort();
    const keys = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    });
    const github = await startSimulator({
      seed: 7,
      apps: [{ id: 12, publicKey: keys.publicKey, installations: [{ id: 34, account: 'acme' }] }],
      webhook: { url: `http://127.0.0.1:${port}/webhooks/github`, secret: 'shh' },
    });
    simulator = github;
    connection = await Connection.connect({ address });
    const client = new Client({ connection });
    const env = await processSettings({
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: name,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify([process.execPath, RUNNER_PROGRAM]),
      HOLDFAST_WEBHOOK_SECRET: 'shh',
      HOLDFAST_REDELIVERY_INTERVAL: '1s',
    });
    const keyFile = join(env['HOLDFAST_STATE_DIR'] ?? '', 'key.pem');
    await writeFile(keyFile, keys.privateKey);
    env['HOLDFAST_CREDENTIALS'] = JSON.stringify({
      default: {
        type: 'app',
        appId: 12,
        installationId: 34,
        privateKeyFile: keyFile,
        apiUrl: github.url,
      },
    });
    const startReceiver = (): WorkerProcess =>
      startWorkerProcess({ ...env, HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}` });

    const input: RunnerSetInput = {
      name,
      minIdle: 0,
      max: 4,
      scaleDownDelay: '1s',
      recreationGuard: '2s',
      queueCheck: '0s', // webhooks and their redelivery alone
      template: { organization: 'acme', labels: ['self-hosted', name], intervals: SHORT_INTERVALS },
      intervals: SHORT_SET_INTERVALS,
    };
    const set = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue: name,
      args: [input],
    });
    const status = async (): Promise<RunnerSetStatus> =>
      await querySetStatus(client, set.workflowId);
    const receiver = startReceiver();
    // Another worker, which gets no webhooks: queries are answered, and runners go on, while the receiver is down. It leaves redelivery
    // to the receiver, which has it only when it is there itself.
    const other = startWorkerProcess({ ...env, HOLDFAST_REDELIVERY_INTERVAL: '0s' });
    const url = await other.started();
    await receiver.started();

    github.addFault({ kind: 'webhook_lost', probability: 0.1 });
    github.addFault({ kind: 'webhook_doubled', probability: 0.1 });
    github.addFault({ kind: 'webhook_shuffled', probability: 0.3, of: 2 });
    const queue = (count: number): number[] =>
      Array.from(
        { length: count },
        () => github.queueJob({ repo: 'acme/app', labels: ['self-hosted', name], sleepMs: 200 }).id,
      );
    const ids = queue(JOBS / 2);
    const done = (): number => ids.filter((id) => github.job(id)?.status === 'completed').length;
    const seen = (): string =>
      JSON.stringify({
        done: done(),
        deliveries: github
          .deliveries()
          .map(({ action, status_code: code, lost }) =>
            lost ? `${action} lost` : `${action} ${code}`,
          ),
      });
    await until('some jobs to be done', () => done() >= 3, seen, 60_000);
    receiver.kill('SIGKILL');
    await receiver.ended;
    ids.push(...queue(JOBS / 2));
    const successor = startReceiver();
    await until('every job to be done', () => done() === JOBS, seen, 120_000);
    github.world.webhooks.releaseDelayed();
    // What was lost on its way is sent again, also after the last runner has gone.
    await until(
      'the set to be at rest',
      async () => {
        const { runners, jobs } = await status();
        return (
          runners.length === 0 &&
          jobs.queued === 0 &&
          jobs.running === 0 &&
          jobs.startedTotal === JOBS &&
          jobs.completedTotal === JOBS
        );
      },
      seen,
      60_000,
    );

    expect(
      ids
        .map((id) => github.job(id))
        .filter((job) => job?.conclusion !== 'success' || job.assignments !== 1),
    ).toEqual([]);
    expect(github.runners()).toEqual([]);
    expect((await status()).jobs).toEqual({
      queued: 0,
      running: 0,
      startedTotal: JOBS,
      completedTotal: JOBS,
    });
    expect(
      github.deliveries().some(({ redelivery, status_code: code }) => redelivery && code === 202),
    ).toBe(true);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    for (const line of [
      `holdfast_set_completed_jobs_total{set="${name}",scope="acme"} ${JOBS}`,
      `holdfast_set_registered_runners{set="${name}",scope="acme"} 0`,
      `holdfast_set_max_runners{set="${name}",scope="acme"} 4`,
    ]) {
      await until(
        line,
        async () => (await (await fetch(`${url}/metrics`)).text()).includes(line),
        () => metrics,
      );
    }
    const received = await (await fetch(`${await successor.started()}/metrics`)).text();
    expect(received).toMatch(
      new RegExp(`holdfast_job_startup_duration_seconds_count\\{set="${name}"\\} [1-9]`),
    );
    expect(received).toMatch(/holdfast_webhook_deliveries_total\{outcome="accepted"\} [1-9]/);
    await notifySet(client, name, { command: 'drain', reason: 'the test is over' });
    await set.result();
  }, 300_000);
});
