/**
 * Runs a Worker that has Holdfast's workflows alone, bundles them as a plugin's user may, and prints how one runner ended. Its callers
 * load the packages in their own way. Arguments: Temporal's address, a task queue and a folder.
 */
exports.runOne = async function runOne({
  Client,
  Connection,
  NativeConnection,
  Worker,
  HoldfastPlugin,
  ciQueuesOf,
  createCiServers,
  createProcessCompute,
  parseCredentials,
  RUNNER_WORKFLOW,
}) {
  const [address, taskQueue, stateDir] = process.argv.slice(2);
  const credentials = parseCredentials({ default: { type: 'pat', tokenEnv: 'TOKEN' } });
  const plugin = new HoldfastPlugin({
    compute: createProcessCompute({ stateDir, anyCommand: true }),
    ciServers: createCiServers(credentials),
    ciQueues: ciQueuesOf(credentials),
  });
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({ connection, taskQueue, plugins: [plugin] });
  const client = new Client({
    connection: await Connection.connect({ address }),
    plugins: [plugin],
  });
  const { outcome } = await worker.runUntil(
    client.workflow.execute(RUNNER_WORKFLOW, {
      workflowId: `runner-${taskQueue}`,
      taskQueue,
      args: [{ ciServer: 'none', command: [process.execPath, '-e', 'process.exit(0)'] }],
    }),
  );
  await client.connection.close();
  await connection.close();
  process.stdout.write(`${JSON.stringify({ outcome })}\n`);
};
