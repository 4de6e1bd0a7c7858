import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { RUNNER_WORKFLOW, type RunnerInput } from '../../core/contract/index.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { createEncryptedDataConverter } from '../../worker/codec/dataConverter.ts';
import { describeWithLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
} from '../support/workerProcess.ts';

const RUNNER_PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));
const TOKEN = 'ghp_simulator';
const MARKS = ['marked-label', 'MARKED_NAME', 'marked-value'];

/** The attack: somebody who may read the namespace fetches histories as they lie there. */
await describeWithLab('readers of Temporal', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-clear-'));
  const keyFile = join(folder, 'keys');
  const given = join(folder, 'given');
  let simulator: Simulator;
  let connection: Connection;

  beforeAll(async () => {
    writeFileSync(keyFile, `first ${randomBytes(32).toString('base64')}\n`);
    simulator = await startSimulator();
    connection = await Connection.connect({ address });
  });
  afterEach(killWorkerProcesses);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await simulator.stop();
    await connection.close();
  });

  /** The whole life of a runner, with a job, by a worker and a runner as processes. @returns what the attacker has, and what the runner was given that nobody else may have */
  async function live(
    ephemeral: boolean,
    more: Record<string, string>,
    client: Client,
  ): Promise<{ text: string; secrets: string[] }> {
    const queue = `test-${randomUUID().slice(0, 8)}`;
    rmSync(given, { force: true });
    const script = `printf '%s\\n' "$ACTIONS_RUNNER_INPUT_JITCONFIG" "$RUNNER_TOKEN" >>${given}; exec ${process.execPath} ${RUNNER_PROGRAM}`;
    const worker = startWorkerProcess(
      await processSettings({
        TEMPORAL_ADDRESS: address,
        HOLDFAST_TASK_QUEUE: queue,
        HOLDFAST_GITHUB_TOKEN: TOKEN,
        HOLDFAST_GITHUB_URL: simulator.url,
        HOLDFAST_RUNNER_COMMAND: JSON.stringify(['bash', '-c', script]),
        ...more,
      }),
    );
    await worker.started();
    const workflowId = `runner-${queue}`;
    const input: RunnerInput = {
      organization: 'acme',
      ephemeral,
      labels: [queue, 'marked-label'],
      env: { MARKED_NAME: 'marked-value' },
      intervals: { onlineCheck: '100ms' },
    };
    const handle = await client.workflow.start(RUNNER_WORKFLOW, {
      workflowId,
      taskQueue: queue,
      args: [input],
    });
    const { id } = simulator.queueJob({ repo: 'acme/app', labels: [queue], command: 'echo done' });
    await simulator.waitForJob(id, 'completed');
    if (!ephemeral) await handle.executeUpdate('drain', { args: [{ reason: 'the test is over' }] });
    expect(await handle.result()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    expect(simulator.job(id)).toMatchObject({ conclusion: 'success' });
    const description = await connection.workflowService.describeWorkflowExecution({
      namespace: 'default',
      execution: { workflowId },
    });
    const text = readable([
      await new Client({ connection }).workflow.getHandle(workflowId).fetchHistory(),
      description,
    ]);
    const secrets = readFileSync(given, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    expect(secrets.length).toBeGreaterThan(0);
    return { text, secrets: [TOKEN, ...secrets] };
  }
  const seen = (text: string, words: readonly string[]): string[] =>
    words.filter((word) => text.includes(word));

  test.each([
    ['an ephemeral', true],
    ['a static', false],
  ])(
    'without the codec, of %s runner: they see its input, but no secret',
    async (_what, ephemeral) => {
      const { text, secrets } = await live(ephemeral, {}, new Client({ connection }));
      expect(seen(text, [...MARKS, ...secrets])).toEqual(MARKS);
    },
  );

  test('with the codec: they see neither', async () => {
    const { text, secrets } = await live(
      true,
      { HOLDFAST_CODEC_KEY_FILE: keyFile },
      new Client({ connection, dataConverter: createEncryptedDataConverter({ keyFile }) }),
    );
    expect(seen(text, [...MARKS, ...secrets])).toEqual([]);
  });
});
