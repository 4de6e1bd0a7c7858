import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { Resource } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { Client, Connection } from '@temporalio/client';
import {
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  bundleWorkflowCode,
  type BundleOptions,
  type WorkerOptions,
} from '@temporalio/worker';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciQueuesOf } from '../../worker/settings/ciQueues.ts';
import { createEncryptedDataConverter } from '../../worker/codec/dataConverter.ts';
import { HoldfastPlugin, type HoldfastPluginOptions } from '../../worker/plugin/plugin.ts';
import { TracingClientInterceptor } from '../../worker/tracing/interceptors.ts';
import {
  RUNNER_WORKFLOW,
  ciTaskQueue,
  type RunnerInput,
  type RunnerResult,
} from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});
const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));

await describeWithLab("the plugin on a user's Worker", { temporal: true }, (lab) => {
  let simulator: Simulator;
  let connection: NativeConnection;
  let client: Client;
  let stateDir: string;

  beforeAll(async () => {
    simulator = await startSimulator();
    connection = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
    client = new Client({
      connection: await Connection.connect({ address: lab.temporal?.address ?? '' }),
    });
    stateDir = await mkdtemp(join(tmpdir(), 'holdfast-plugin-'));
  });
  afterAll(async () => {
    await client.connection.close();
    await connection.close();
    await simulator.stop();
    // The process of a runner may write its last file just now.
    await rm(stateDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });

  function pluginOptions(more: Partial<HoldfastPluginOptions> = {}): HoldfastPluginOptions {
    process.env['TEST_PLUGIN_TOKEN'] = 'ghp_simulator';
    const credentials = parseCredentials({
      default: { type: 'pat', tokenEnv: 'TEST_PLUGIN_TOKEN', apiUrl: simulator.url },
    });
    return {
      compute: createProcessCompute({
        stateDir,
        anyCommand: true,
        command: [process.execPath, RUNNER_PROGRAM],
      }),
      ciServers: createCiServers(credentials),
      ciQueues: ciQueuesOf(credentials),
      ...more,
    };
  }
  const newQueue = (): string => `test-${randomUUID().slice(0, 8)}`;
  const pollers = async (taskQueue: string): Promise<number> => {
    const { pollers: found } = await client.workflowService.describeTaskQueue({
      namespace: 'default',
      taskQueue: { name: taskQueue },
      taskQueueType: ACTIVITY,
    });
    return found?.length ?? 0;
  };

  async function runOneRunner(taskQueue: string, starter = client): Promise<RunnerResult> {
    const input: RunnerInput = {
      repository: 'acme/app',
      labels: [taskQueue],
      intervals: { onlineCheck: '100ms' },
    };
    const handle = await starter.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${taskQueue}`,
      taskQueue,
      args: [input],
    });
    const { id } = simulator.queueJob({
      repo: 'acme/app',
      labels: [taskQueue],
      command: 'echo from the job',
    });
    const result = (await handle.result()) as RunnerResult;
    expect(simulator.job(id)).toMatchObject({
      conclusion: 'success',
      output: expect.arrayContaining(['from the job']),
    });
    return result;
  }

  test.each<[string, Partial<WorkerOptions>, greetings: string[]]>([
    ['with nothing else', {}, []],
    [
      'with workflows and activities of its own',
      {
        workflowsPath: fileURLToPath(
          new URL('../support/foreignWorker/workflows.ts', import.meta.url),
        ),
        activities: { greet: async (name: string) => `hello ${name}` },
      },
      ['hello you'],
    ],
  ])('runs a runner, %s', async (_what, own, greetings) => {
    const taskQueue = newQueue();
    const completions: boolean[] = [];
    const plugin = new HoldfastPlugin(
      pluginOptions({ onCompletion: (completed) => completions.push(completed) }),
    );
    expect(plugin.status()).toEqual({
      polling: false,
      podCacheSynced: false,
      activitiesInFlight: 0,
    });
    const worker = await Worker.create({ connection, taskQueue, plugins: [plugin], ...own });
    await worker.runUntil(async () => {
      await until(
        'the plugin to be up',
        () => plugin.status().polling && plugin.status().podCacheSynced,
      );
      expect(await runOneRunner(taskQueue)).toMatchObject({ outcome: 'succeeded', attempt: 1 });
      const greeting = { workflowId: `greeting-${taskQueue}`, taskQueue, args: ['you'] };
      const greeted = greetings.map(
        async () => (await client.workflow.execute('greeting', greeting)) as unknown,
      );
      expect(await Promise.all(greeted)).toEqual(greetings);
      expect(await pollers(ciTaskQueue(taskQueue, 'default'))).toBe(1);
    });
    expect(plugin.status()).toMatchObject({ polling: false, activitiesInFlight: 0 });
    expect(completions).toContain(true); // its waits ended by the watcher, not by a poll
    expect(simulator.runners()).toEqual([]);
    expect(await readdir(join(stateDir, 'pods'))).toEqual([]);
  });

  test('with tracing and its own workflows: spans show the runner, including its activities on other task queues', async () => {
    const exported = new InMemorySpanExporter();
    const spanProcessor = new SimpleSpanProcessor(exported);
    const provider = new BasicTracerProvider({ spanProcessors: [spanProcessor] });
    provider.register({ contextManager: new AsyncLocalStorageContextManager().enable() });
    try {
      const taskQueue = newQueue();
      const plugin = new HoldfastPlugin(
        pluginOptions({ tracing: { spanProcessor, resource: Resource.default() } }),
      );
      const own = {
        workflowsPath: fileURLToPath(
          new URL('../support/foreignWorker/workflows.ts', import.meta.url),
        ),
        activities: { greet: async (name: string) => `hello ${name}` },
      };
      const worker = await Worker.create({ connection, taskQueue, plugins: [plugin], ...own });
      await worker.runUntil(async () => {
        await until(
          'the plugin to be up',
          () => plugin.status().polling && plugin.status().podCacheSynced,
        );
        const tracing = new Client({
          connection: client.connection,
          interceptors: { workflow: [new TracingClientInterceptor()] },
        });
        expect(await runOneRunner(taskQueue, tracing)).toMatchObject({ outcome: 'succeeded' });
        // What is not Holdfast's is not traced.
        expect(
          await tracing.workflow.execute('greeting', {
            workflowId: `greeting-${taskQueue}`,
            taskQueue,
            args: ['you'],
          }),
        ).toBe('hello you');
      });
      const spans = exported.getFinishedSpans();
      const named = (name: string): ReadableSpan | undefined =>
        spans.find((span) => span.name === name);
      const above = (span: ReadableSpan | undefined): string | undefined =>
        spans.find((each) => each.spanContext().spanId === span?.parentSpanId)?.name;
      expect(
        ['RunWorkflow:runner', 'StartActivity:provision', 'RunActivity:provision'].map((name) =>
          above(named(name)),
        ),
      ).toEqual(['StartWorkflow:runner', 'RunWorkflow:runner', 'StartActivity:provision']);
      expect(spans.map(({ name }) => name).filter((name) => /gree/.test(name))).toEqual([
        'StartWorkflow:greeting',
      ]);
    } finally {
      for (const api of [trace, context, propagation]) api.disable();
    }
  });

  test('set on the connection, it applies to the one Worker on it', async () => {
    const plugin = new HoldfastPlugin(pluginOptions());
    const own = await NativeConnection.connect({
      address: lab.temporal?.address ?? '',
      plugins: [plugin],
    });
    const taskQueue = newQueue();
    const worker = await Worker.create({ connection: own, taskQueue });
    await worker.runUntil(async () =>
      expect(await runOneRunner(taskQueue)).toMatchObject({ outcome: 'succeeded' }),
    );
    await own.close(); // throws while any Worker still uses it
  });

  test('a bundle built with the plugin alone runs a runner, including its tracing', async () => {
    const plugin = new HoldfastPlugin(pluginOptions());
    // Its type asks for workflows; JavaScript does not, and the plugin has some.
    const bundle = await bundleWorkflowCode({
      plugins: [plugin],
      logger: new DefaultLogger('ERROR'),
    } as unknown as BundleOptions);
    expect(bundle.code).toContain('holdfastSpans');
    const taskQueue = newQueue();
    const worker = await Worker.create({
      connection,
      taskQueue,
      plugins: [plugin],
      workflowBundle: bundle,
    });
    await worker.runUntil(async () =>
      expect(await runOneRunner(taskQueue)).toMatchObject({ outcome: 'succeeded' }),
    );
  });

  test('its data converter applies to Worker, Client and bundle, and excludes another one', async () => {
    const keyFile = join(stateDir, 'codec.keys');
    await writeFile(keyFile, `one ${randomBytes(32).toString('base64')}\n`);
    const dataConverter = createEncryptedDataConverter({ keyFile });
    const plugin = new HoldfastPlugin(pluginOptions({ dataConverter }));
    const { failureConverterPath } = dataConverter;
    expect(plugin.configureBundler({ workflowsPath: 'own.ts' })).toMatchObject({
      workflowsPath: 'own.ts',
      failureConverterPath,
    });
    const other = { ...dataConverter };
    expect(() => new Client({ plugins: [plugin], dataConverter: other })).toThrow(/^dataConverter/);
    const taskQueue = newQueue();
    const worker = await Worker.create({ connection, taskQueue, plugins: [plugin] });
    const encrypting = new Client({ connection: client.connection, plugins: [plugin] });
    await worker.runUntil(async () => {
      expect(await runOneRunner(taskQueue, encrypting)).toMatchObject({ outcome: 'succeeded' });
      const { events } = await client.workflow.getHandle(`runner-${taskQueue}`).fetchHistory();
      const input = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
      expect(Buffer.from(input?.metadata?.['encoding'] ?? []).toString()).toBe('binary/encrypted');
    });
  });

  test('a Worker that is shut down before the plugin has started still stops', async () => {
    const worker = await Worker.create({
      connection,
      taskQueue: newQueue(),
      plugins: [new HoldfastPlugin(pluginOptions())],
    });
    await worker.runUntil(async () => undefined);
    expect(worker.getState()).toBe('STOPPED');
  });

  test('a watch that cannot start stops the Worker with its error', async () => {
    const { compute, ...rest } = pluginOptions();
    const broken: Compute = {
      ...compute,
      watch: async () => await Promise.reject(new Error('no watch today')),
    };
    const worker = await Worker.create({
      connection,
      taskQueue: newQueue(),
      plugins: [new HoldfastPlugin({ ...rest, compute: broken })],
    });
    await expect(worker.run()).rejects.toThrow('no watch today');
    expect(worker.getState()).toBe('STOPPED');
  });

  test('a watch that never responds does not prevent the Worker from stopping', async () => {
    const { compute, ...rest } = pluginOptions();
    const silent: Compute = {
      ...compute,
      watch: async () => await new Promise<never>(() => undefined),
    };
    const plugin = new HoldfastPlugin({ ...rest, compute: silent });
    const worker = await Worker.create({ connection, taskQueue: newQueue(), plugins: [plugin] });
    await worker.runUntil(
      async () => await until('the Workers to poll', () => plugin.status().polling),
    );
    expect(plugin.status().podCacheSynced).toBe(false);
  });

  test('a version whose workflows stay on it by default is rejected, because sets do not end', async () => {
    const workerDeploymentOptions = {
      useWorkerVersioning: true,
      version: { deploymentName: 'd', buildId: 'b' },
      defaultVersioningBehavior: 'PINNED',
    } as const;
    await expect(
      Worker.create({
        connection,
        taskQueue: newQueue(),
        plugins: [new HoldfastPlugin(pluginOptions())],
        workerDeploymentOptions,
      }),
    ).rejects.toThrow(
      "workerDeploymentOptions.defaultVersioningBehavior: Holdfast's sets need 'AUTO_UPGRADE'",
    );
  });

  test('one instance for two Workers, and an activity with the same name, are rejected', async () => {
    const plugin = new HoldfastPlugin(pluginOptions());
    const worker = await Worker.create({ connection, taskQueue: newQueue(), plugins: [plugin] });
    await expect(
      Worker.create({ connection, taskQueue: newQueue(), plugins: [plugin] }),
    ).rejects.toThrow('this HoldfastPlugin is in use by another Worker: make one for each Worker');
    await worker.runUntil(async () => undefined);
    const clash = Worker.create({
      connection,
      taskQueue: newQueue(),
      plugins: [new HoldfastPlugin(pluginOptions())],
      activities: { removeRegistration: async () => 'mine' },
    });
    await expect(clash).rejects.toThrow(
      "the Worker has activities of the same name as Holdfast's: removeRegistration; rename them",
    );
  });
});

/** temporal.api.enums.v1.TaskQueueType */
const ACTIVITY = 2;
