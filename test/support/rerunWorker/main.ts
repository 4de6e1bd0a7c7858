/**
 * A worker that reruns jobs and does nothing else, as a process that can be killed. Its arguments:
 * Temporal's address, task queue, URL of GitHub's API, file with the bundle of the workflows. The
 * token is in RERUN_TOKEN.
 */
import { NativeConnection, Worker } from '@temporalio/worker';
import { createCiServers } from '../../../activities/ciServers/index.ts';
import { parseCredentials } from '../../../activities/ciServers/credentials.ts';
import { HoldfastPlugin } from '../../../worker/plugin/plugin.ts';
import { FakeCompute } from '../fakeCompute.ts';

const [address = '', taskQueue = '', apiUrl = '', codePath = ''] = process.argv.slice(2);
const credentials = parseCredentials({
  default: { type: 'pat', tokenEnv: 'RERUN_TOKEN', apiUrl, reruns: true },
});
const plugin = new HoldfastPlugin({
  compute: new FakeCompute(),
  ciServers: createCiServers(credentials),
  ciQueues: [{ credential: 'default' }],
});
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address }),
  taskQueue,
  workflowBundle: { codePath },
  plugins: [plugin],
});
await worker.run();
