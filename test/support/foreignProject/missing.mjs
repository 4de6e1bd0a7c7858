/** Uses features that need packages which are not installed, and prints each error. */
import { Worker, NativeConnection } from '@temporalio/worker';
import { HoldfastPlugin, createCiServers, createProcessCompute } from 'holdfast';
import { withTraceparent } from 'holdfast/internal/activities/shared/withTraceparent.js';
import { loadOptional } from 'holdfast/internal/activities/shared/optionalPackages.js';

const [address, taskQueue, stateDir] = process.argv.slice(2);
const messages = [];
const plugin = new HoldfastPlugin({
  compute: createProcessCompute({ stateDir }),
  ciServers: createCiServers(new Map()),
  ciQueues: [],
  tracing: { spanProcessor: {}, resource: {} },
});
const connection = await NativeConnection.connect({ address });
await Worker.create({ connection, taskQueue, plugins: [plugin] }).catch((error) =>
  messages.push(error.message),
);
await connection.close();
await loadOptional(
  '--store',
  async () => await import('holdfast/internal/activities/artifacts/bucketStore.js'),
).catch((error) => messages.push(error.message));
// An input may name a trace where nothing traces.
await withTraceparent('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', async () =>
  messages.push('acted'),
);
process.stdout.write(`${JSON.stringify(messages)}\n`);
