import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciQueuesOf } from '../../worker/settings/ciQueues.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import { RUNNER_WORKFLOW, type RunnerInput } from '../../core/contract/index.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { describeWithLab } from '../support/lab.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});
process.env['TEST_LANE_TOKEN'] = 'ghp_simulator';
const MANY = 80;
const FEW = 5;

await describeWithLab('the lane of a credential', { temporal: true }, (lab) => {
  let simulator: Simulator;
  let connection: Connection;
  let native: NativeConnection;

  beforeAll(async () => {
    simulator = await startSimulator({ secondaryLimits: true });
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
    native = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
  });
  afterAll(async () => {
    await native.close();
    await connection.close();
    await simulator.stop();
  });

  test("runners beyond GitHub's limit wait in the queue, without an error, and do not starve others", async () => {
    const taskQueue = `test-${randomUUID().slice(0, 8)}`;
    const client = new Client({ connection });
    const credentials = parseCredentials({
      default: {
        type: 'pat',
        tokenEnv: 'TEST_LANE_TOKEN',
        apiUrl: simulator.url,
        pointsPerMinute: 900,
      },
    });
    const ciServers = createCiServers(credentials);
    const compute = new FakeCompute();
    const start = async (input: RunnerInput, count: number): Promise<void> => {
      const ids = Array.from({ length: count }, () => `runner-${randomUUID()}`);
      await Promise.all(
        ids.map(
          async (workflowId) =>
            await client.workflow.start(RUNNER_WORKFLOW, { workflowId, taskQueue, args: [input] }),
        ),
      );
    };
    const worker = await Worker.create({
      connection: native,
      taskQueue,
      plugins: [new HoldfastPlugin({ compute, ciServers, ciQueues: ciQueuesOf(credentials) })],
    });
    const registered = (scope: string): number =>
      simulator.runners().filter((runner) => runner.scope === scope).length;
    await worker.runUntil(async () => {
      await start({ organization: 'big' }, MANY);
      await until('the queue to be long', () => registered('orgs/big') >= 10);
      await start({ repository: 'small/app' }, FEW);
      await until(
        'the few',
        () => registered('repos/small/app') === FEW,
        () => `${registered('repos/small/app')} few, ${registered('orgs/big')} many`,
      );
      // In a queue without fairness they would come after all of the many.
      expect(registered('orgs/big')).toBeLessThan(MANY);
      await until(
        'the many',
        () => registered('orgs/big') === MANY,
        () => `${registered('orgs/big')} of ${MANY}`,
        180_000,
      );
    });
    expect(compute.created).toHaveLength(MANY + FEW);
    const requests = simulator.requests();
    expect(requests.filter(({ status }) => status >= 400)).toEqual([]);
    // GitHub allows 180 writes a minute: 3 a second, after a few at once.
    const times = requests.map(({ at }) => Date.parse(at));
    for (const from of times)
      expect(
        times.filter((time) => time >= from && time < from + 10_000).length,
      ).toBeLessThanOrEqual(30 + 10);
    expect(
      (await client.workflow.count(`TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`))
        .count,
    ).toBe(MANY + FEW);
    await terminateAll(client, taskQueue);
    await ciServers.close();
  }, 300_000);
});
