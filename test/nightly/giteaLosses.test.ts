/** Runners of a real Gitea that are lost with their job: Gitea gives up the job when the runner is silent. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { HELD_JOB } from '../support/clusterRun.ts';
import type { ClusterWorld } from '../support/clusterWorld.ts';
import { Gitea } from '../support/gitea.ts';
import { openGiteaPods } from '../support/giteaPods.ts';
import { describeWithLab } from '../support/lab.ts';
import { until, untilSeen } from '../support/until.ts';

const REPOSITORY = 'acme/app';
const NEEDS = { gitea: true, temporal: true, nodes: 'kubelet' } as const;
/** Time within which the lab's Gitea gives up a job (ms). */
const GIVEN_UP_MS = 120_000;

await describeWithLab('Pods of Gitea that are evicted while busy', NEEDS, (lab) => {
  const gitea = new Gitea(lab.gitea);
  let world: ClusterWorld;
  beforeAll(async () => void (world = await openGiteaPods(lab, gitea)));
  afterAll(async () => {
    await world.close();
    await gitea.clear();
  });

  test.each([true, false])(
    'killed in its job, which Gitea fails later; nothing is left (ephemeral: %s)',
    async (ephemeral) => {
      const label = `lost-${randomUUID().slice(0, 8)}`;
      const run = await world.start(label, {
        ciServer: 'gitea',
        organization: 'acme',
        labels: [label],
        ephemeral,
        stop: { signalTimeout: '1s' },
      });
      await run.reaches('idle', ({ phase }) => phase === 'Idle');
      const { id } = await gitea.queueJob(REPOSITORY, [label], HELD_JOB);
      const { pod = '' } = await run.reaches('busy', ({ phase }) => phase === 'Busy');
      await run.evict(pod);
      expect(await run.result()).toMatchObject({ outcome: 'errored', cause: 'evicted' });
      // The runner was killed before it could report anything, and Gitea does not know yet.
      expect(await gitea.job(REPOSITORY, id)).toMatchObject({ status: 'in_progress' });
      const job = await untilSeen(
        'Gitea to give up the job',
        async () => await gitea.job(REPOSITORY, id),
        ({ status }) => status === 'completed',
        GIVEN_UP_MS,
      );
      expect(job).toMatchObject({ conclusion: 'failure' });
      await until('no registration', async () => (await gitea.runners()).length === 0);
      await world.expectNothingLeft();
    },
    400_000,
  );
});
