/** Asks for what needs packages that are not installed, and prints what each says. */
import { Worker, NativeConnection } from '@temporalio/worker';
import { HoldfastPlugin, createCiServers, createProcessCompute } from 'holdfast';
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
process.stdout.write(`${JSON.stringify(messages)}\n`);
