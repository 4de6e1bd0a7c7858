import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import { WireRunner } from '../support/wireRunner.ts';

const TOKEN = 'ghp_stale_lists';

/** A static runner registers itself, and ends before a list of the CI server's has it, on a real API server. */
await describeWithLab(
  'an outdated list of runners',
  { temporal: true, kubernetes: true },
  (lab) => {
    let simulator: Simulator;
    let ciServers: ReturnType<typeof createCiServers>;
    let harness: KubernetesHarness;
    let world: HoldfastWorld;

    beforeEach(async () => {
      process.env['HOLDFAST_STALE_LIST_TOKEN'] = TOKEN;
      simulator = await startSimulator({ tokens: [{ token: TOKEN, name: 'default' }] });
      ciServers = createCiServers(
        parseCredentials({
          default: { type: 'pat', tokenEnv: 'HOLDFAST_STALE_LIST_TOKEN', apiUrl: simulator.url },
        }),
      );
      harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
      world = await holdfastWorld(lab.temporal!.address, { compute: harness.compute, ciServers });
    });
    afterEach(async () => {
      await world.close();
      await harness.close();
      await ciServers.close();
      await simulator.stop();
    });

    test('is no proof of absence: the runner is searched again, and its registration removed', async () => {
      const { id } = simulator.addFault({ kind: 'stale_list', ageMs: 3_600_000 });
      const run = await world.start({
        ephemeral: false,
        supervisor: 'none',
        pod: { spec: { schedulerName: 'contract' } },
        intervals: { listMaxAge: '10s' },
      });
      const pod = (await harness.second.getPod({ name: await run.pod() }))!;
      await harness.makeRunning(pod);
      await until('a list without it', () =>
        simulator
          .requests()
          .some(
            ({ endpoint, path, status }) =>
              status === 200 && endpoint.startsWith('GET ') && path.includes('/actions/runners'),
          ),
      );
      const identity = {
        workflowId: run.handle.workflowId,
        firstRunId: (await run.handle.describe()).runId,
        attempt: 1,
      };
      const { runner } = await WireRunner.start(
        simulator.url,
        (await harness.second.readRegistrationSecret(identity))!,
      );
      await harness.end(pod, 1);
      runner.stop();
      await run.reaches(
        'a wait for another list',
        ({ waitingFor }) => waitingFor?.includes('lists may be old') === true,
      );
      expect(simulator.runners()).toHaveLength(1);
      simulator.clearFaults(id);
      expect(await run.result()).toMatchObject({ outcome: 'failed', exitCode: 1 });
      expect(simulator.runners()).toEqual([]);
    });
  },
);
