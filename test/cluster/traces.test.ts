import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { freePort } from '../../tools/lab/ports.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { TRACE_HEADER } from '../../core/activities/index.ts';
import {
  RUNNER_SET_WORKFLOW,
  setStatusQuery,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { CliProcess } from '../support/cli.ts';
import { Collector, type CollectedSpan } from '../support/collector.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeIf, ensureLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import { SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
  type WorkerProcess,
} from '../support/workerProcess.ts';

/** The SDK's core says so now and then when it evicts a workflow from its cache, and goes on: with no cache that is after each task. */
const OF_A_WORKER_WITHOUT_CACHE =
  /^There should not be any outgoing commands or messages when preparing a completion response if the activation was only an eviction/;
const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));

async function labWithCollector(): ReturnType<typeof ensureLab> {
  await resolveBinary('otelcol', { progress: (line) => process.stderr.write(`[lab] ${line}\n`) });
  return await ensureLab({ temporal: true });
}

await describeIf('traces', labWithCollector, { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  let name: string;
  let collector: Collector;
  let client: Client;
  let github: Simulator;
  let env: Record<string, string>;

  beforeEach(async () => {
    name = `traced-${randomUUID().slice(0, 8)}`;
    const port = await freePort();
    collector = await Collector.start();
    github = await startSimulator({
      webhook: { url: `http://127.0.0.1:${port}/webhooks/github`, secret: 'shh' },
    });
    client = new Client({ connection: await Connection.connect({ address }) });
    env = await processSettings({
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: name,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify([process.execPath, RUNNER_PROGRAM]),
      HOLDFAST_GITHUB_TOKEN: 'ghp_simulator',
      HOLDFAST_GITHUB_URL: github.url,
      HOLDFAST_WEBHOOK_SECRET: 'shh',
      HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}`,
    });
  });
  afterEach(async () => {
    await killWorkerProcesses();
    await terminateAll(client, name);
    await client.connection.close();
    await github.stop();
    await collector.stop();
  });

  const traced = (more: Record<string, string> = {}): Record<string, string> => ({
    ...env,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    ...more,
  });

  /** A set for one job at a time, and a job that it serves. @returns the set, and the trace that the job's run has */
  async function runJob(): Promise<{ set: WorkflowHandle; trace: string }> {
    const input: RunnerSetInput = {
      name,
      minIdle: 0,
      max: 1,
      scaleDownDelay: '1s',
      queueCheck: '0s',
      template: { organization: 'acme', labels: [name], intervals: SHORT_INTERVALS },
      intervals: SHORT_SET_INTERVALS,
    };
    const set = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue: name,
      args: [input],
    });
    const { id } = github.queueJob({ repo: 'acme/app', labels: [name], command: 'true' });
    await until(
      'the job to be done',
      () => github.job(id)?.status === 'completed',
      () => JSON.stringify(github.deliveries()),
      60_000,
    );
    await until(
      'its runner to be gone',
      async () => ((await set.query(setStatusQuery)) as RunnerSetStatus).runners.length === 0,
    );
    // As OpenTelemetry's collector reckons it in its receiver of GitHub's webhook.
    const { run_id: run, run_attempt: attempt } = github.job(id) as {
      run_id: number;
      run_attempt: number;
    };
    return {
      set,
      trace: createHash('sha256').update(`${run}${attempt}t`).digest('hex').slice(0, 32),
    };
  }

  async function collected(
    trace: string,
    worker: WorkerProcess,
    names: readonly string[],
  ): Promise<CollectedSpan[]> {
    const spans = (): CollectedSpan[] =>
      collector.spans().filter(({ traceId }) => traceId === trace);
    await until(
      'all spans',
      () => names.every((each) => spans().some((span) => span.name === each)),
      () =>
        JSON.stringify([
          worker.log.filter(({ level }) => level !== 'info'),
          spans().map((span) => span.name),
        ]),
    );
    return spans();
  }

  test('from the webhook to the end of the job: one trace, each span once and with its parent, also after replays', async () => {
    const worker = startWorkerProcess(traced({ HOLDFAST_MAX_CACHED_WORKFLOWS: '0' }));
    await worker.started();
    const { set, trace } = await runJob();
    const spans = await collected(trace, worker, [
      'RunWorkflow:runner',
      'webhook workflow_job completed',
    ]);
    const only = (wanted: string): CollectedSpan => {
      const found = spans.filter((span) => span.name === wanted);
      expect([wanted, found.length]).toEqual([wanted, 1]);
      return found[0] as CollectedSpan;
    };
    const path = (span: CollectedSpan | undefined): string[] =>
      span === undefined
        ? []
        : [...path(spans.find(({ spanId }) => spanId === span.parentSpanId)), span.name];

    const demands = spans.filter((span) => span.name === 'HandleSignal:jobEvents').map(path);
    expect(demands).toContainEqual([
      'webhook workflow_job queued',
      'SignalWorkflow:jobEvents',
      'HandleSignal:jobEvents',
    ]);
    expect(path(only('RunActivity:provision'))).toEqual([
      'webhook workflow_job queued',
      'StartWorkflow:runner',
      'RunWorkflow:runner',
      'StartActivity:provision',
      'RunActivity:provision',
    ]);
    expect(only('RunWorkflow:runner')).toMatchObject({
      service: 'holdfast-worker',
      status: 1,
      attributes: {
        temporalWorkflowId: only('StartWorkflow:runner').attributes['temporalWorkflowId'],
      },
    });
    // Deliveries are where it begins; nothing else is without a parent, and no parent is missing.
    for (const root of spans.filter((span) => path(span).length === 1))
      expect([root.name, root.parentSpanId]).toEqual([
        expect.stringMatching(/^webhook workflow_job (queued|in_progress|completed)$/),
        '',
      ]);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    // A set has no end: what it does by itself is in no trace.
    expect(
      collector
        .spans()
        .filter((span) => /:(runnerSet|clock|startRunners|listRunners|admitSet)$/.test(span.name)),
    ).toEqual([]);
    expect(readable(await set.fetchHistory())).toContain(`traceparent\\":\\"00-${trace}-`);
    expect(
      worker.log.filter(
        ({ level, msg }) => level === 'error' && !OF_A_WORKER_WITHOUT_CACHE.test(msg),
      ),
    ).toEqual([]);
  }, 120_000);

  test('without an endpoint: no header and no field', async () => {
    const worker = startWorkerProcess(env);
    await worker.started();
    const { set } = await runJob();
    const histories = [await set.fetchHistory()];
    for await (const { workflowId } of client.workflow.list({
      query: `TaskQueue = '${name}' AND WorkflowType = 'runner'`,
    }))
      histories.push(await client.workflow.getHandle(workflowId).fetchHistory());
    for (const history of histories) {
      expect((history.events ?? []).length).toBeGreaterThan(0);
      expect(JSON.stringify(history)).not.toContain(TRACE_HEADER);
      expect(readable(history)).not.toContain('traceparent\\":\\"00-');
    }
    expect(collector.spans()).toEqual([]);
  }, 120_000);

  test('a runner that a command started is in the trace of its caller, on workers with and without span export', async () => {
    const trace = randomBytes(16).toString('hex');
    const parent = randomBytes(8).toString('hex');
    const silent = startWorkerProcess(env);
    await silent.started();
    const goOn = join(env['HOLDFAST_STATE_DIR'] ?? '', 'go-on');
    const cli = new CliProcess(
      ['runner', 'start', '--org', 'acme', '--labels', name, '--name', name, '--json'],
      traced({ TRACEPARENT: `00-${trace}-${parent}-01` }),
    );
    expect([(await cli.exited).code, cli.stderr]).toEqual([0, '']);
    const { id } = github.queueJob({
      repo: 'acme/app',
      labels: [name],
      command: `echo begun; until [ -e ${goOn} ]; do sleep 0.05; done`,
    });
    await until('the job to run', () => github.job(id)?.output.includes('begun') === true);
    silent.kill('SIGTERM');
    await silent.ended;
    expect(silent.log.filter(({ level }) => level === 'error')).toEqual([]);

    const worker = startWorkerProcess(traced());
    await worker.started();
    await writeFile(goOn, '');
    await client.workflow.getHandle(`runner-${name}`).result();
    const spans = await collected(trace, worker, ['StartWorkflow:runner', 'RunWorkflow:runner']);
    const [start] = spans.filter((span) => span.name === 'StartWorkflow:runner');
    expect(start).toMatchObject({ service: 'holdfast', parentSpanId: parent });
    expect(spans.find((span) => span.name === 'RunWorkflow:runner')).toMatchObject({
      service: 'holdfast-worker',
      parentSpanId: start?.spanId,
    });
    // What was over before is in no worker's memory: its spans were those of the one that exports none.
    expect(spans.filter((span) => span.name === 'RunActivity:provision')).toEqual([]);
    expect(worker.log.filter(({ level }) => level === 'error')).toEqual([]);
  }, 120_000);
});
