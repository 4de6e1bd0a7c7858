import { randomBytes, randomUUID } from 'node:crypto';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { RUNNER_WORKFLOW, SET_COVER_MEMO, type RunnerInput, type RunnerResult } from '../../core/contract/index.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { encryptedDataConverter } from '../../worker/codec/dataConverter.ts';
import { runCli, type CliRun } from '../support/cli.ts';
import { describeWithLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';
import { killWorkerProcesses, processSettings, startWorkerProcess, type WorkerProcess } from '../support/workerProcess.ts';

const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));
const TOKEN = 'ghp_simulator';

await describeWithLab('what of a life lies in Temporal', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-codec-'));
  const keyFile = join(folder, 'keys');
  let simulator: Simulator;
  let connection: Connection;
  /** Sees what lies there. */
  let raw: Client;
  let queue = '';

  beforeAll(async () => {
    writeFileSync(keyFile, `first ${randomBytes(32).toString('base64')}\n`);
    simulator = await startSimulator();
    connection = await Connection.connect({ address });
    raw = new Client({ connection });
  });
  afterEach(async () => {
    simulator.clearFaults();
    await killWorkerProcesses();
    await terminateAll(raw, queue);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await simulator.stop();
    await connection.close();
  });

  /** Settings of a worker on a queue of this test's own, whose runners write down the secrets that they are given. */
  async function settings(more: Record<string, string> = {}): Promise<Record<string, string>> {
    queue = `test-${randomUUID().slice(0, 8)}`;
    const script = `printf '%s\\n' "$ACTIONS_RUNNER_INPUT_JITCONFIG" "$RUNNER_TOKEN" >>${given()}; exec ${process.execPath} ${RUNNER_PROGRAM}`;
    return await processSettings({
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: queue,
      HOLDFAST_GITHUB_TOKEN: TOKEN,
      HOLDFAST_GITHUB_URL: simulator.url,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(['bash', '-c', script]),
      ...more,
    });
  }
  const given = (): string => join(folder, `${queue}.given`);
  const encrypted = (): Client => new Client({ connection, dataConverter: encryptedDataConverter({ keyFile }) });
  const cli = async (args: readonly string[], more: Record<string, string> = { HOLDFAST_CODEC_KEY_FILE: keyFile }): Promise<CliRun> =>
    await runCli(args, { TEMPORAL_ADDRESS: address, TEMPORAL_CONFIG_FILE: '/dev/null', HOLDFAST_TASK_QUEUE: queue, ...more });

  async function everything(handle: WorkflowHandle): Promise<string> {
    return readable([await handle.fetchHistory(), (await handle.describe()).raw]);
  }
  const seen = (text: string, words: readonly string[]): string[] => words.filter((word) => text.includes(word));

  /** A life with a mark in everything that a user writes, and a job. */
  async function live(client: Client): Promise<{ handle: WorkflowHandle; result: RunnerResult; lies: string }> {
    const workflowId = `runner-${queue}`;
    const input: RunnerInput = { organization: 'acme', labels: [queue, 'marked-label'], env: { MARKED_NAME: 'marked-value' }, intervals: { onlineLookup: '100ms' } };
    const handle = await client.workflow.start(RUNNER_WORKFLOW, { workflowId, taskQueue: queue, args: [input], staticSummary: 'marked-summary', staticDetails: 'marked-details', memo: { [SET_COVER_MEMO]: 'marked-memo' } });
    const job = simulator.queueJob({ repo: 'acme/app', labels: [queue], command: 'echo done' });
    const result = (await handle.result()) as RunnerResult;
    expect(result).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    expect(simulator.job(job.id)).toMatchObject({ conclusion: 'success' });
    return { handle, result, lies: await everything(raw.workflow.getHandle(workflowId)) };
  }
  const MARKS = ['marked-label', 'MARKED_NAME', 'marked-value', 'marked-summary', 'marked-details', 'marked-memo'];
  /** What the runner was given that nobody else may have. */
  function secrets(): string[] {
    const lines = readFileSync(given(), 'utf8').split('\n').filter((line) => line !== '');
    expect(lines.length).toBeGreaterThan(0);
    return [TOKEN, ...lines];
  }

  test('with the codec: nothing of input, result, summary, details and memo, though names and search attributes; and no secret', async () => {
    await startWorkerProcess(await settings({ HOLDFAST_CODEC_KEY_FILE: keyFile })).started();
    const { result, lies } = await live(encrypted());
    expect(seen(lies, [...MARKS, result.message, ...secrets()])).toEqual([]);
    // As docs/security.md says.
    expect(seen(lies, ['acme', `runner-${queue}`, result.runnerName, 'ended/', 'awaitPod'])).toEqual(['acme', `runner-${queue}`, result.runnerName, 'ended/', 'awaitPod']);
  });

  test('without: the input, as its author is warned, and no secret', async () => {
    await startWorkerProcess(await settings()).started();
    const { lies } = await live(raw);
    expect(seen(lies, [...MARKS, ...secrets()])).toEqual(MARKS);
  });

  test('a worker without the key leaves a life as it is, and says which key and setting; one that has it goes on', async () => {
    const env = await settings();
    const keyless = startWorkerProcess(env);
    await keyless.started();
    const handle = await encrypted().workflow.start(RUNNER_WORKFLOW, { workflowId: `runner-${queue}`, taskQueue: queue, args: [{ organization: 'acme', labels: [queue], intervals: { onlineLookup: '100ms' } }] });
    const told = (): boolean => JSON.stringify(keyless.log).includes('this is encrypted with the key \\\\\\"first\\\\\\": set HOLDFAST_CODEC_KEY_FILE to the file that has it');
    await until('the worker to say so', told, () => JSON.stringify(keyless.log));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    expect(simulator.runners().filter(({ labels }) => labels.includes(queue))).toEqual([]);
    keyless.kill('SIGTERM');
    await keyless.ended;
    await startWorkerProcess({ ...env, HOLDFAST_CODEC_KEY_FILE: keyFile }).started();
    simulator.queueJob({ repo: 'acme/app', labels: [queue], command: 'echo done' });
    expect(await handle.result()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
  });

  test('the keys are rotated while the worker runs: a life of before goes on, and what comes is encrypted with the new one', async () => {
    const worker = startWorkerProcess(await settings({ HOLDFAST_CODEC_KEY_FILE: keyFile }));
    await worker.started();
    const client = encrypted();
    const handle = await client.workflow.start(RUNNER_WORKFLOW, { workflowId: `runner-${queue}`, taskQueue: queue, args: [{ organization: 'acme', labels: [queue], intervals: { onlineLookup: '100ms' } }] });
    await until('the runner to listen', () => simulator.runners().some(({ labels, status }) => labels.includes(queue) && status === 'online'));
    writeFileSync(keyFile, `second ${randomBytes(32).toString('base64')}\n${readFileSync(keyFile, 'utf8')}`);
    simulator.queueJob({ repo: 'acme/app', labels: [queue], command: 'echo done' });
    expect(await handle.result()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    const history = await raw.workflow.getHandle(`runner-${queue}`).fetchHistory();
    expect(readable(history.events?.[0])).toContain('"encryption-key-id":"first"');
    expect(readable(history.events?.at(-1))).toContain('"encryption-key-id":"second"');
  });

  test('the command: why a runner waits and how it failed, with the key; without it, which key and setting are missing', async () => {
    await startWorkerProcess(await settings({ HOLDFAST_CODEC_KEY_FILE: keyFile })).started();
    simulator.addFault({ kind: 'status', status: 500, endpoint: 'POST *generate-jitconfig' } as never);
    const started = await cli(['runner', 'start', '--org', 'acme', '--labels', queue, '--name', queue]);
    expect(started).toMatchObject({ status: 0, stdout: `runner-${queue}\n` });
    let shown: CliRun | undefined;
    await until('the command to show why', async () => /generate-jitconfig|HTTP 500|answered 500|500/.test((shown = await cli(['runner', 'get', queue])).stdout), () => JSON.stringify(shown));
    expect(shown?.stdout).not.toContain('Encoded failure');
    const lies = await everything(raw.workflow.getHandle(`runner-${queue}`));
    expect(lies).toContain('Encoded failure');
    for (const more of [{}, { HOLDFAST_CODEC_KEY_FILE: otherKeys() }]) {
      const { status, stderr } = await cli(['runner', 'get', queue], more as Record<string, string>);
      expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/encrypted with the key "(first|second)".*HOLDFAST_CODEC_KEY_FILE/) });
    }
    expect(await cli(['runner', 'list'], { HOLDFAST_CODEC_KEY_FILE: join(folder, 'none') })).toMatchObject({ status: 2, stderr: expect.stringContaining('error: HOLDFAST_CODEC_KEY_FILE: cannot read ') });
  });

  function otherKeys(): string {
    const path = join(folder, 'other');
    appendFileSync(path, `other-${randomUUID().slice(0, 8)} ${randomBytes(32).toString('base64')}\n`);
    return path;
  }

  test('a life that fails: its message is encrypted, and the command shows it', async () => {
    const worker: WorkerProcess = startWorkerProcess(await settings({ HOLDFAST_CODEC_KEY_FILE: keyFile }));
    await worker.started();
    const workflowId = `runner-${queue}`;
    const handle = await encrypted().workflow.start(RUNNER_WORKFLOW, { workflowId, taskQueue: queue, args: [{ organization: 'acme', labels: [queue], credential: 'marked-credential' }] });
    await expect(handle.result()).rejects.toMatchObject({ cause: { message: expect.stringContaining('marked-credential') } });
    expect(await everything(raw.workflow.getHandle(workflowId))).not.toContain('marked-credential');
    expect((await cli(['runner', 'get', queue])).stdout).toMatch(/Message: +the workflow failed: .*marked-credential/);
  });
});
