import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { PHASE_DURATION_METRIC } from '../../core/domain/phaseDurationMetric.ts';
import {
  JOB_WORKFLOW,
  RUNNER_WORKFLOW,
  type RunnerInput,
  type RunnerResult,
} from '../../core/contract/index.ts';
import { metricsIn, shippedQueries } from '../support/dashboards.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
  type WorkerProcess,
} from '../support/workerProcess.ts';

/** temporal.api.enums.v1.PendingActivityState */
const SCHEDULED = 1;
const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));

await describeWithLab('the worker as a process', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  let simulator: Simulator;
  let connection: Connection;

  beforeAll(async () => {
    simulator = await startSimulator();
    connection = await Connection.connect({ address });
  });
  afterEach(killWorkerProcesses);
  afterAll(async () => {
    await simulator.stop();
    await connection.close();
  });

  /** Settings with the simulator as GitHub, on a task queue of the test's own. */
  const settings = async (more: Record<string, string> = {}): Promise<Record<string, string>> =>
    await processSettings({
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: `test-${randomUUID().slice(0, 8)}`,
      HOLDFAST_GITHUB_TOKEN: 'ghp_simulator',
      HOLDFAST_GITHUB_URL: simulator.url,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify([process.execPath, RUNNER_PROGRAM]),
      ...more,
    });
  const client = (namespace = 'default'): Client => new Client({ connection, namespace });

  test('health, readiness, metrics; ended by SIGTERM with status 143', async () => {
    const worker = startWorkerProcess(await settings());
    const url = await worker.started();
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ok', failing: [] });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    for (const name of [
      'temporal_worker_task_slots_available',
      'holdfast_pod_wait_completions_total',
      'nodejs_eventloop_lag_seconds',
    ]) {
      expect(metrics).toContain(name);
    }
    expect((await fetch(`${url}/webhooks/github`, { method: 'POST' })).status).toBe(404);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(143);
    expect(worker.log.map(({ msg }) => msg)).toContain(
      'received terminated: handing 0 activities back; no runner is cancelled',
    );
    expect(worker.errors).toEqual([]);
  });

  test('ended jobs are counted by outcome, including outcomes with 0, before it ends', async () => {
    const env = await settings();
    const worker = startWorkerProcess(env);
    const url = await worker.started();
    const goOn = join(env['HOLDFAST_STATE_DIR'] ?? '', 'go-on');
    const counts = async (): Promise<Record<string, number>> => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Object.fromEntries(
        [...text.matchAll(/^holdfast_completed_jobs_total\{.*outcome="(\w+)".*\} (\d+)$/gm)].map(
          ([, outcome = '', count]) => [outcome, Number(count)],
        ),
      );
    };
    const input = {
      name: 'web',
      test: [{ name: 'unit', commands: `until [ -e ${goOn} ]; do sleep 0.05; done; exit 3` }],
    };
    const job = await client().workflow.start(JOB_WORKFLOW, {
      workflowId: `job-${randomUUID()}`,
      taskQueue: env['HOLDFAST_TASK_QUEUE'] ?? '',
      args: [input],
    });
    await until('the job to run', async () => Object.keys(await counts()).length > 0);
    expect(await counts()).toEqual({ succeeded: 0, failed: 0, errored: 0, aborted: 0 });
    // A command that ends before its pod is seen to run was never busy.
    await until('its step to be busy', async () =>
      new RegExp(`^${PHASE_DURATION_METRIC}_count\\{.*phase="Provisioning"`, 'm').test(
        await (await fetch(`${url}/metrics`)).text(),
      ),
    );
    await writeFile(goOn, '');
    expect(await job.result()).toMatchObject({ outcome: 'failed' });
    await until('the end to be counted', async () => (await counts())['failed'] === 1);
    expect(await counts()).toEqual({ succeeded: 0, failed: 1, errored: 0, aborted: 0 });
    const text = await (await fetch(`${url}/metrics`)).text();
    // What the dashboards show of the SDK and of the process is not ours to document.
    for (const name of shippedQueries()
      .flatMap(metricsIn)
      .filter((metric) => !metric.startsWith('holdfast_')))
      expect(text).toContain(`\n# TYPE ${name} `);
    const [life] =
      /^holdfast_completed_runners_total\{.*outcome="failed".*\} \d+$/m.exec(text) ?? [];
    expect(life).toMatch(/cause="\w+".* 1$/);
    for (const phase of ['Requested', 'Provisioning', 'Busy'])
      expect(text).toMatch(
        new RegExp(`^${PHASE_DURATION_METRIC}_count\\{.*phase="${phase}".*\\} 1$`, 'm'),
      );
    expect(text).toMatch(
      new RegExp(`^${PHASE_DURATION_METRIC}_bucket\\{.*le="86400".*\\} 1$`, 'm'),
    );
  });

  test('SIGINT ends it with status 130', async () => {
    const worker = startWorkerProcess(await settings());
    await worker.started();
    worker.kill('SIGINT');
    expect(await worker.ended).toBe(130);
    expect(worker.log.map(({ msg }) => msg)).toContain(
      'received interrupt: handing 0 activities back; no runner is cancelled',
    );
  });

  test('SIGTERM during a job: the runner is not interrupted, and another worker continues', async () => {
    const env = await settings();
    const queue = env['HOLDFAST_TASK_QUEUE'] ?? '';
    const goOn = join(env['HOLDFAST_STATE_DIR'] ?? '', 'go-on');
    const first = startWorkerProcess(env);
    await first.started();
    const input: RunnerInput = {
      organization: 'acme',
      labels: [queue],
      intervals: { onlineCheck: '100ms' },
    };
    const handle = await client().workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${queue}`,
      taskQueue: queue,
      args: [input],
    });
    const { id } = simulator.queueJob({
      repo: 'acme/app',
      labels: [queue],
      command: `echo begun; while [ ! -e ${goOn} ]; do sleep 0.05; done; echo done`,
    });
    await until('the job to run', () => simulator.job(id)?.output.includes('begun') === true);
    const runner = simulator.job(id)?.runner_name;
    // Where the workflow waits in the code is told by a worker that is set to, as the next one is, and by no other.
    expect(await handle.query('__stack_trace')).not.toContain('workflows/runner/runner.ts');

    first.kill('SIGTERM');
    expect(await first.ended).toBe(143);
    expect(first.log.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(
        /^received terminated: handing \d activities back; no runner is cancelled$/,
      ),
    );
    expect(simulator.job(id)).toMatchObject({
      status: 'in_progress',
      runner_name: runner,
      cancelRequested: false,
    });

    await startWorkerProcess({ ...env, HOLDFAST_WORKFLOW_STACK_TRACES: 'true' }).started();
    expect(await handle.query('__stack_trace')).toContain('workflows/runner/runner.ts');
    await writeFile(goOn, '');
    const result = (await handle.result()) as RunnerResult;
    expect(result).toMatchObject({ outcome: 'succeeded', attempt: 1, runnerName: runner });
    expect(simulator.job(id)).toMatchObject({
      status: 'completed',
      conclusion: 'success',
      assignments: 1,
      output: expect.arrayContaining(['begun', 'done']),
    });
    expect(simulator.runners().filter(({ labels }) => labels.includes(queue))).toEqual([]);
  });

  describe('with a slow registration in progress', () => {
    let handle: WorkflowHandle;
    let worker: WorkerProcess;
    let url: string;

    async function begin(more: Record<string, string>): Promise<void> {
      const env = await settings(more);
      const queue = env['HOLDFAST_TASK_QUEUE'] ?? '';
      worker = startWorkerProcess(env);
      url = await worker.started();
      const { id } = simulator.addFault({
        kind: 'latency',
        ms: 15_000,
        endpoint: 'POST *generate-jitconfig',
      });
      const input: RunnerInput = { organization: 'acme', labels: [queue] };
      handle = await client().workflow.start(RUNNER_WORKFLOW, {
        workflowId: `runner-${queue}`,
        taskQueue: queue,
        args: [input],
      });
      await until(
        'the registration to be asked for',
        () => (simulator.faults().find((fault) => fault.id === id)?.hits ?? 0) > 0,
      );
      worker.kill('SIGTERM');
      await until('the worker to say so', () =>
        worker.log.some(
          ({ msg }) =>
            msg === 'received terminated: handing 1 activities back; no runner is cancelled',
        ),
      );
    }
    afterEach(async () => {
      simulator.clearFaults();
      await handle.terminate();
    });

    test('it is handed back after the grace period, without waiting for its timeout', async () => {
      await begin({ HOLDFAST_SHUTDOWN_GRACE_TIME: '500ms', HOLDFAST_SHUTDOWN_FORCE_TIME: '10s' });
      expect(await worker.ended).toBe(143);
      const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
      expect({ attempt: pending?.attempt, state: pending?.state }).toEqual({
        attempt: 2,
        state: SCHEDULED,
      });
      expect(worker.log.filter(({ level }) => level === 'error')).toEqual([]);
    });

    test('a second signal ends the process at once', async () => {
      await begin({ HOLDFAST_SHUTDOWN_GRACE_TIME: '40s', HOLDFAST_SHUTDOWN_FORCE_TIME: '50s' });
      expect((await fetch(`${url}/readyz`)).status).toBe(503);
      const before = performance.now();
      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(143);
      expect(performance.now() - before).toBeLessThan(30_000);
      expect((await handle.describe()).status.name).toBe('RUNNING');
    });
  });

  test('a missing namespace or search attribute: the error has the command that fixes it', async () => {
    const namespace = `test-${randomUUID().slice(0, 8)}`;
    const env = await settings({ TEMPORAL_NAMESPACE: namespace });
    const mend = async (): Promise<string> => {
      const worker = startWorkerProcess(env);
      expect(await worker.ended).toBe(2);
      expect(worker.errors).toHaveLength(1);
      const [, command] = /; fix: temporal (.*)$/.exec(worker.errors[0] ?? '') ?? [];
      await promisify(execFile)(await resolveBinary('temporal'), (command ?? '').split(' '));
      return worker.errors[0] ?? '';
    };
    expect(await mend()).toMatch(
      new RegExp(
        `^holdfast worker: TEMPORAL_NAMESPACE: the Temporal server at ${address} has no namespace "${namespace}"; fix: temporal operator namespace create --namespace ${namespace} --retention 72h --address ${address}$`,
      ),
    );
    await until('the namespace to be known', async () => {
      await client(namespace).workflow.count();
      return true;
    });
    expect(await mend()).toBe(
      'holdfast worker: Temporal search attributes missing: RunnerPhase, RunnerSet, RunnerScope, RunnerOutcome, RunnerCause, RunnerName, RunnerLocation; fix: temporal operator search-attribute create ' +
        '--name RunnerPhase --type Keyword --name RunnerSet --type Keyword --name RunnerScope --type Keyword --name RunnerOutcome --type Keyword --name RunnerCause --type Keyword --name RunnerName --type Keyword --name RunnerLocation --type Keyword ' +
        `--address ${address} --namespace ${namespace}`,
    );
    const worker = startWorkerProcess(env);
    await worker.started();
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(143);
  }, 120_000); // the server takes up to 10 s to know a new namespace everywhere, twice

  test('a wrong Temporal address: one line that names the setting and the fix', async () => {
    const worker = startWorkerProcess(
      await settings({ TEMPORAL_ADDRESS: '127.0.0.1:1', HOLDFAST_CONNECT_TIMEOUT: '1s' }),
    );
    expect(await worker.ended).toBe(2);
    expect(worker.errors).toEqual([
      'holdfast worker: TEMPORAL_ADDRESS: no Temporal server answers at 127.0.0.1:1 within 1 s (connection refused): set TEMPORAL_ADDRESS to your server\'s host:port, or start one with "temporal server start-dev"',
    ]);
  });

  test('SIGTERM while it waits for the Temporal server', async () => {
    const worker = startWorkerProcess(
      await settings({ TEMPORAL_ADDRESS: '127.0.0.1:1', HOLDFAST_CONNECT_TIMEOUT: '1m' }),
    );
    await until('the worker to wait', () =>
      worker.log.some(({ msg }) => msg.includes('trying for another')),
    );
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(143);
    expect(worker.errors).toEqual([]);
  });

  test.each([
    [
      'a kubeconfig that is not there',
      { HOLDFAST_COMPUTE: 'kubernetes', HOLDFAST_KUBECONFIG: '/nowhere/config' },
      /^holdfast worker: HOLDFAST_KUBECONFIG: .*\/nowhere\/config.*; fix: set HOLDFAST_KUBECONFIG/,
    ],
    [
      'a state folder that cannot be',
      { HOLDFAST_STATE_DIR: '/dev/null/state' },
      /^holdfast worker: HOLDFAST_STATE_DIR: the state folder \/dev\/null\/state cannot be used .*; fix: set HOLDFAST_STATE_DIR/,
    ],
    [
      'settings that are wrong',
      { HOLDFAST_LOG_LEVEL: 'loud' },
      /^holdfast worker: HOLDFAST_LOG_LEVEL: "loud" is not one of trace, debug, info, warn, error$/,
    ],
  ])('%s: one line and status 2', async (_what, wrong: Record<string, string>, line) => {
    const worker = startWorkerProcess(await settings(wrong));
    expect(await worker.ended).toBe(2);
    expect(worker.errors).toEqual([expect.stringMatching(line)]);
  });

  test('a port in use: one line and status 2', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await until('the port', () => server.listening);
    const { port } = server.address() as AddressInfo;
    const worker = startWorkerProcess(
      await settings({ HOLDFAST_HTTP_ADDRESS: `127.0.0.1:${port}` }),
    );
    expect(await worker.ended).toBe(2);
    expect(worker.errors).toEqual([
      `holdfast worker: HOLDFAST_HTTP_ADDRESS: cannot listen on 127.0.0.1:${port} (EADDRINUSE): set another address or port`,
    ]);
    server.close();
  });
});
