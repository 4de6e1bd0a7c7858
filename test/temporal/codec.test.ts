import { randomBytes, randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, type WorkflowHandle } from '@temporalio/client';
import { pino } from 'pino';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { applicationFailure } from '../../activities/shared/failures.ts';
import {
  RUNNER_WORKFLOW,
  SET_ROUTING_MEMO,
  type RunnerInput,
  type RunnerResult,
} from '../../core/contract/index.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { CodecKeyFile } from '../../worker/codec/codecKeyFile.ts';
import { createCodecServer } from '../../worker/codec/codecServer.ts';
import { dataConverterOf, createEncryptedDataConverter } from '../../worker/codec/dataConverter.ts';
import { EncryptionCodec, type PayloadRejection } from '../../worker/codec/encryptionCodec.ts';
import { workflowSourceOptions } from '../../worker/plugin/workflowBundle.ts';
import { runCli, type CliRun } from '../support/cli.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

await describeWithLab('plain text of a runner in Temporal', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-codec-'));
  const keyFile = join(folder, 'keys');
  writeFileSync(keyFile, `first ${randomBytes(32).toString('base64')}\n`);
  const ENCRYPTED = createEncryptedDataConverter({ keyFile });
  const CLEAR = dataConverterOf(undefined);
  const rejections: PayloadRejection[] = [];
  /** Accepts nothing but payloads that are encrypted for the workflow that receives them. */
  const STRICT = createEncryptedDataConverter({
    keyFile,
    required: {
      unboundWorkflowIds: [],
      onRejected: (rejection) => {
        rejections.push(rejection);
      },
    },
  });
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  async function begin(dataConverter = STRICT): Promise<void> {
    compute = new FakeCompute();
    ci = new FakeCiServer();
    world = await holdfastWorld(address, { compute, ciServers: ci }, undefined, dataConverter);
  }
  // Made once for all workers to come, which takes its time.
  beforeAll(
    async () =>
      void (await Promise.all([
        workflowSourceOptions({ dataConverter: STRICT }),
        workflowSourceOptions({}),
      ])),
    300_000,
  );
  afterEach(async () => {
    await world.close();
    rejections.length = 0;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const INPUT = {
    organization: 'acme',
    labels: ['marked-label'],
    env: { MARKED_TOKEN: 'marked-value' },
    intervals: SHORT_INTERVALS,
  } satisfies RunnerInput;
  const MARKS = [
    'marked-label',
    'MARKED_TOKEN',
    'marked-value',
    'marked-summary',
    'marked-details',
    'marked-memo',
    'marked-reason',
  ];

  /** A life with a mark in everything that a user writes. */
  async function start(): Promise<WorkflowHandle> {
    return await world.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${randomUUID().slice(0, 8)}`,
      taskQueue: world.taskQueue,
      args: [INPUT],
      staticSummary: 'marked-summary',
      staticDetails: 'marked-details',
      memo: { [SET_ROUTING_MEMO]: 'marked-memo' },
    });
  }
  /** Has its runner come online, and drains it. */
  async function live(handle: WorkflowHandle): Promise<RunnerResult> {
    await until('its pod', () => compute.pods.size > 0);
    for (const pod of compute.pods.keys()) compute.start(pod);
    await until(
      'the runner to be idle',
      async () => (await handle.query<{ phase: string }>('status')).phase === 'Idle',
    );
    await handle.executeUpdate('drain', { args: [{ reason: 'marked-reason' }] });
    return (await handle.result()) as RunnerResult;
  }
  /** As whoever may read there sees it. */
  async function lies({ workflowId }: WorkflowHandle): Promise<string> {
    const raw = new Client({ connection: world.client.connection }).workflow.getHandle(workflowId);
    const description = await world.client.workflowService.describeWorkflowExecution({
      namespace: 'default',
      execution: { workflowId },
    });
    return readable([await raw.fetchHistory(), description]);
  }
  const seen = (text: string, words: readonly string[]): string[] =>
    words.filter((word) => text.includes(word));
  const cli = async (
    args: readonly string[],
    more: Record<string, string> = { HOLDFAST_CODEC_KEY_FILE: keyFile },
  ): Promise<CliRun> =>
    await runCli(args, {
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: world.taskQueue,
      ...more,
    });
  const keysOf = (name: string): string => {
    const path = join(folder, name);
    writeFileSync(path, `${name} ${randomBytes(32).toString('base64')}\n`);
    return path;
  };

  test('with the codec: nothing of input, result, update, summary, details and memo; names and search attributes remain', async () => {
    await begin();
    const handle = await start();
    const result = await live(handle);
    expect(result).toMatchObject({
      outcome: 'succeeded',
      message: expect.stringContaining('marked-reason'),
    });
    const text = await lies(handle);
    expect(seen(text, [...MARKS, result.message])).toEqual([]);
    expect(text).toContain('"encryption-key-id":"first"');
    // As docs/security.md says.
    const names = [
      'acme',
      handle.workflowId,
      world.taskQueue,
      result.runnerName,
      'awaitPod',
      'ended/',
    ];
    expect(seen(text, names)).toEqual(names);
    expect(rejections).toEqual([]);
  });

  describe('if only payloads of this workflow are accepted', () => {
    const stranger = (): Client => new Client({ connection: world.client.connection });
    /** As they lie in Temporal, with the codec left out. */
    const inputOf = async (handle: WorkflowHandle): Promise<Payload[]> => {
      const [first] =
        (await stranger().workflow.getHandle(handle.workflowId).fetchHistory()).events ?? [];
      return (first?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []) as Payload[];
    };
    const startRaw = async (payloads: Payload[]): Promise<WorkflowHandle> => {
      const workflowId = `runner-${randomUUID().slice(0, 8)}`;
      await world.client.workflowService.startWorkflowExecution({
        namespace: 'default',
        workflowId,
        requestId: randomUUID(),
        workflowType: { name: RUNNER_WORKFLOW },
        taskQueue: { name: world.taskQueue },
        input: { payloads },
      });
      return world.client.workflow.getHandle(workflowId);
    };
    const signalRaw = async (workflowId: string, payloads: Payload[]): Promise<unknown> =>
      await world.client.workflowService.signalWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId },
        requestId: randomUUID(),
        signalName: 'cancel',
        input: { payloads },
      });

    test("a runner's input in plain text, or of another runner, is a validation error", async () => {
      await begin();
      const other = await start();
      await until('its pod', () => compute.pods.size === 1);
      const clear = [defaultPayloadConverter.toPayload(INPUT)];
      for (const payloads of [clear, await inputOf(other)]) {
        const rejected = await startRaw(payloads);
        const failure = (await rejected.result().catch((error: unknown) => error)) as Error;
        expect(failure.cause).toMatchObject({ type: 'InvalidInput' });
      }
      expect(rejections.map(({ reason }) => reason)).toEqual([
        'it is not encrypted',
        'it was encrypted for another workflow',
      ]);
      expect(compute.pods.size).toBe(1);
      expect(await live(other)).toMatchObject({ outcome: 'succeeded' });
    });

    test('such a signal does not cancel a runner', async () => {
      await begin();
      const [one, two] = [await start(), await start()];
      await until('their pods', () => compute.pods.size === 2);
      await two.signal('cancel', { mode: 'force' });
      await two.result();
      const { events } = await stranger().workflow.getHandle(two.workflowId).fetchHistory();
      const signalled = events?.find((event) => event.workflowExecutionSignaledEventAttributes);
      const { input } = signalled?.workflowExecutionSignaledEventAttributes ?? {};
      for (const payloads of [
        [defaultPayloadConverter.toPayload({ mode: 'force' })],
        input?.payloads,
      ])
        await signalRaw(one.workflowId, payloads as Payload[]);
      await until('both to be rejected', () => rejections.length >= 2);
      expect(await live(one)).toMatchObject({ outcome: 'succeeded' });
    });
  });

  test('without the codec: all of it, with a warning in the details', async () => {
    await begin(CLEAR);
    const handle = await start();
    await until(
      'its details',
      async () =>
        JSON.stringify(await handle.query('__temporal_workflow_metadata')).includes('Warning'),
      undefined,
    );
    // Without Markdown's escapes.
    const details = JSON.stringify(await handle.query('__temporal_workflow_metadata')).replaceAll(
      '\\',
      '',
    );
    expect(details).toContain('env: MARKED_TOKEN ');
    expect(details).not.toContain('marked-value');
    await live(handle);
    expect(seen(await lies(handle), MARKS)).toEqual(MARKS);
  });

  /** A set that makes a runner for a job, and is ended when that is done. @returns all that lies in Temporal of both, every run of them */
  async function setLife(): Promise<string> {
    const set = await SetRun.start(
      { world, compute, ci },
      {
        minIdle: 0,
        max: 2,
        queueCheck: '0s',
        template: { labels: ['linux', 'marked-label'], env: INPUT.env },
      },
    );
    const jobId = await set.queueJob();
    const [runner] = (await set.comesTo({ idle: 1 })).runners;
    if (runner === undefined) throw new Error('no runner');
    set.startJob(runner);
    await set.tell(set.event('in_progress', jobId, runner.runnerName));
    await set.settles({ busy: 1 });
    set.endJob(runner);
    await set.tell(set.event('completed', jobId, runner.runnerName));
    expect(await set.settles({})).toMatchObject({
      desired: 0,
      jobs: { queued: 0, running: 0, completedTotal: 1 },
    });
    await set.end();
    const raw = new Client({ connection: world.client.connection });
    const texts = new Map<string, string>();
    const completed = new Set<string>();
    await until('both to be listed as completed', async () => {
      for await (const { workflowId, runId, status } of world.client.workflow.list({
        query: `TaskQueue = '${world.taskQueue}'`,
      })) {
        if (status.name === 'COMPLETED') completed.add(workflowId);
        const description = await raw.workflowService.describeWorkflowExecution({
          namespace: 'default',
          execution: { workflowId, runId },
        });
        texts.set(
          runId,
          readable([await raw.workflow.getHandle(workflowId, runId).fetchHistory(), description]),
        );
      }
      return [set.handle.workflowId, runner.workflowId].every((id) => completed.has(id));
    });
    return [...texts.values()].join('\n');
  }
  /** The last two are a job's, and an update's. */
  const SET_MARKS = [
    'marked-label',
    'MARKED_TOKEN',
    'marked-value',
    'acme/app',
    'the test is over',
  ];

  test('with the codec, nothing of a set, its jobs and its runners', async () => {
    await begin();
    const text = await setLife();
    expect(seen(text, SET_MARKS)).toEqual([]);
    expect(text).toContain('"encryption-key-id":"first"');
    expect(compute.pods.size).toBe(0);
    expect(rejections).toEqual([]);
  });

  test('without the codec, all of that', async () => {
    await begin(CLEAR);
    expect(seen(await setLife(), SET_MARKS)).toEqual(SET_MARKS);
  });

  test('with the codec there is no warning', async () => {
    await begin();
    const handle = await start();
    await until('its pod', () => compute.pods.size > 0);
    expect(JSON.stringify(await handle.query('__temporal_workflow_metadata'))).not.toContain(
      'Warning',
    );
  });

  test('a runner from before the codec continues', async () => {
    await begin(CLEAR);
    const handle = await start();
    await until('its pod', () => compute.pods.size > 0);
    await world.suspend();
    await world.resume(undefined, ENCRYPTED);
    expect(
      await live(
        new Client({
          connection: world.client.connection,
          dataConverter: ENCRYPTED,
        }).workflow.getHandle(handle.workflowId),
      ),
    ).toMatchObject({ outcome: 'succeeded' });
  });

  test.each([
    ['no keys', () => CLEAR],
    ['other keys', () => createEncryptedDataConverter({ keyFile: keysOf('other') })],
  ])(
    'a worker with %s does nothing with a runner, and names the missing key; one that has it continues',
    async (_what, another) => {
      await begin();
      await world.suspend();
      const handle = await start();
      await world.resume(undefined, another());
      const raw = new Client({
        connection: world.client.connection,
        dataConverter: another(),
      }).workflow.getHandle(handle.workflowId);
      const failed = async (): Promise<unknown> =>
        (await raw.fetchHistory()).events?.find((event) => event.workflowTaskFailedEventAttributes);
      await until('the task to fail', async () => (await failed()) !== undefined);
      expect((await handle.describe()).status.name).toBe('RUNNING');
      expect({ pods: compute.pods.size, calls: ci.calls }).toEqual({ pods: 0, calls: [] });
      await world.suspend();
      await world.resume();
      expect(await live(handle)).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    },
  );

  test('after a rotation of keys a runner continues, and new payloads use the new key', async () => {
    const before = readFileSync(keyFile, 'utf8');
    await begin();
    const handle = await start();
    await until('its pod', () => compute.pods.size > 0);
    writeFileSync(keyFile, `second ${randomBytes(32).toString('base64')}\n${before}`);
    expect(await live(handle)).toMatchObject({ outcome: 'succeeded' });
    const history = await new Client({ connection: world.client.connection }).workflow
      .getHandle(handle.workflowId)
      .fetchHistory();
    expect(readable(history.events?.[0])).toContain('"encryption-key-id":"first"');
    expect(readable(history.events?.at(-1))).toContain('"encryption-key-id":"second"');
  });

  test('the command shows why a runner waits, and how it failed; without the key it names the missing key', async () => {
    await begin();
    world.pretences.push({
      activity: 'provision',
      answer: () => {
        throw applicationFailure('no node for marked-trouble', 'SomeTrouble', {
          nextRetryDelayMs: 3_600_000,
        });
      },
    });
    const waiting = await start();
    let shown: CliRun | undefined;
    await until(
      'the command to show why',
      async () =>
        (shown = await cli(['runner', 'get', waiting.workflowId])).stdout.includes(
          'no node for marked-trouble',
        ),
      () => JSON.stringify(shown),
    );
    const text = await lies(waiting);
    expect(seen(text, ['marked-trouble', 'Encoded failure'])).toEqual(['Encoded failure']);
    for (const more of [{}, { HOLDFAST_CODEC_KEY_FILE: keysOf('other') }] as Record<
      string,
      string
    >[]) {
      expect(await cli(['runner', 'get', waiting.workflowId], more)).toEqual({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(
          /encrypted with the key "(first|second)".*HOLDFAST_CODEC_KEY_FILE/,
        ),
      });
    }

    const refused = await world.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${randomUUID().slice(0, 8)}`,
      taskQueue: world.taskQueue,
      args: [{ ...INPUT, onTerm: 'marked-term' as never }],
    });
    await expect(refused.result()).rejects.toThrow('Workflow execution failed');
    expect(await lies(refused)).not.toContain('marked-term');
    expect((await cli(['runner', 'get', refused.workflowId])).stdout).toMatch(
      /Message: +the workflow failed: .*onTerm/,
    );
  });

  test("Temporal's own command decodes it with the codec server", async () => {
    await begin();
    const handle = await start();
    const server = createCodecServer({
      codec: new EncryptionCodec(new CodecKeyFile(keyFile)),
      origins: [],
      tokens: () => ['sesame'],
      logger: pino({ level: 'silent' }),
    });
    try {
      const endpoint = await server.listen({ host: '127.0.0.1', port: 0 });
      const temporal = await resolveBinary('temporal');
      const show = async (...flags: string[]): Promise<string> =>
        (
          await promisify(execFile)(
            temporal,
            [
              'workflow',
              'show',
              '--workflow-id',
              handle.workflowId,
              '--address',
              address,
              '--output',
              'json',
              ...flags,
            ],
            { env: { ...process.env, TEMPORAL_CONFIG_FILE: '/dev/null' } },
          )
        ).stdout;
      expect(readable(JSON.parse(await show()))).not.toContain('marked-value');
      expect(
        readable(
          JSON.parse(await show('--codec-endpoint', endpoint, '--codec-auth', 'Bearer sesame')),
        ),
      ).toContain('marked-value');
    } finally {
      await server.close();
    }
  });
});
