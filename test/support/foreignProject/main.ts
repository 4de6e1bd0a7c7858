/**
 * A Worker of a project that has installed Holdfast from a registry. It runs one of its own workflows
 * and one runner, and prints their results.
 */
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import {
  HoldfastPlugin,
  ciQueuesOf,
  createCiServers,
  createProcessCompute,
  parseCredentials,
} from 'holdfast';
import { RUNNER_WORKFLOW, type RunnerInput, type RunnerResult } from 'holdfast/contract';

const [address = '', taskQueue = '', stateDir = ''] = process.argv.slice(2);
const credentials = parseCredentials({ default: { type: 'pat', tokenEnv: 'TOKEN' } });
const plugin = new HoldfastPlugin({
  compute: createProcessCompute({ stateDir, anyCommand: true }),
  ciServers: createCiServers(credentials),
  ciQueues: ciQueuesOf(credentials),
});
const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection,
  taskQueue,
  plugins: [plugin],
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
});
const client = new Client({ connection: await Connection.connect({ address }) });
const input: RunnerInput = {
  ciServer: 'none',
  command: [process.execPath, '-e', 'process.exit(0)'],
};
await worker.runUntil(async () => {
  const greeted: string = await client.workflow.execute('greeting', {
    workflowId: `greeting-${taskQueue}`,
    taskQueue,
    args: ['you'],
  });
  const { outcome } = (await client.workflow.execute(RUNNER_WORKFLOW, {
    workflowId: `runner-${taskQueue}`,
    taskQueue,
    args: [input],
  })) as RunnerResult;
  process.stdout.write(`${JSON.stringify({ greeted, outcome })}\n`);
});
await client.connection.close();
await connection.close();
