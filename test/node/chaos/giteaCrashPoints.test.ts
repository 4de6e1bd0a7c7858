/** A worker that is killed when the Secret or the pod of a runner of a real Gitea was created: the next one uses what is there. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { ClusterWorld } from '../../support/clusterWorld.ts';
import { Gitea } from '../../support/gitea.ts';
import { openGiteaPods } from '../../support/giteaPods.ts';
import { describeWithLab } from '../../support/lab.ts';
import { startKubernetesProxy } from './kubernetesProxy.ts';
import type { WithholdingProxy } from './withholdingProxy.ts';

const REPOSITORY = 'acme/app';
const NEEDS = { gitea: true, temporal: true, nodes: 'kubelet' } as const;

await describeWithLab('worker killed while it creates a runner of Gitea', NEEDS, (lab) => {
  const gitea = new Gitea(lab.gitea);
  let folder: string;
  let kubernetes: WithholdingProxy;
  let world: ClusterWorld;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-crash-'));
    const { proxy, kubeconfig } = await startKubernetesProxy(lab, folder);
    kubernetes = proxy;
    world = await openGiteaPods(lab, gitea, { HOLDFAST_KUBECONFIG: kubeconfig });
  });
  afterEach(async () => {
    expect(await gitea.runners()).toEqual([]);
    await world.expectNothingLeft();
  });
  afterAll(async () => {
    await world.close();
    await kubernetes.close();
    await gitea.clear();
    await rm(folder, { recursive: true });
  });

  test.each(['secrets', 'pods'])(
    '%s: one registration and one pod, and its job runs',
    async (kind) => {
      const label = `crash-${randomUUID().slice(0, 8)}`;
      const path = new RegExp(`/${kind}(\\?|$)`);
      const point = kubernetes.withhold(
        (request) =>
          request.method === 'POST' &&
          path.test(request.path) &&
          request.body.includes(`runner-${label}-`),
      );
      const run = await world.start(label, {
        ciServer: 'gitea',
        organization: 'acme',
        labels: [label],
      });
      const withheld = await point;
      expect([withheld.status, withheld.waiting()]).toEqual([201, true]);
      world.worker.kill('SIGKILL');
      await world.worker.ended;
      await world.startWorker();
      await run.reaches('idle', ({ phase }) => phase === 'Idle');
      const [runner, ...others] = await gitea.runners();
      expect(others).toEqual([]);
      const { id } = await gitea.queueJob(REPOSITORY, [label]);
      const result = await run.result();
      expect(result).toMatchObject({ outcome: 'succeeded', attempt: 1, runnerName: runner?.name });
      expect(await gitea.job(REPOSITORY, id)).toMatchObject({
        conclusion: 'success',
        runner_name: runner?.name,
      });
      expect(run.podsEver()).toHaveLength(1);
    },
  );
});
