/** The chart with the values of docs/gitea.md on a real kubelet, and a real Gitea: from `helm install` to the first job. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
} from '../../core/contract/index.ts';
import { giteaRunnerImage } from '../../tools/lab/images/definitions.ts';
import { addImages } from '../../tools/lab/lab.ts';
import { ChartWorld, WEBHOOK_SECRET } from '../support/chartWorld.ts';
import { SHORT_INTERVALS } from '../support/clusterRun.ts';
import { Gitea } from '../support/gitea.ts';
import { describeWithLab } from '../support/lab.ts';
import { SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { until } from '../support/until.ts';

const NEEDS = { gitea: true, temporal: true, nodes: 'kubelet' } as const;
const TAG = '1';
const REPOSITORY = 'acme/app';

await describeWithLab('the chart with Gitea', NEEDS, (lab) => {
  const gitea = new Gitea(lab.gitea);
  const label = `chart-${randomUUID().slice(0, 8)}`;
  let world: ChartWorld;
  let hook: number | undefined;

  beforeAll(async () => {
    await addImages(lab.stateDir, [giteaRunnerImage]);
    await gitea.clear();
    world = await ChartWorld.open(lab, [TAG]);
    const { core, name: namespace } = world.home;
    const secret = { metadata: { name: 'gitea' }, stringData: { token: gitea.access.token } };
    await core.createNamespacedSecret({ namespace, body: secret });
  }, 180_000);
  afterAll(async () => {
    if (hook !== undefined) await gitea.api('DELETE', `/orgs/acme/hooks/${hook}`);
    await world.close();
    await gitea.clear();
  }, 120_000);

  const set = (): RunnerSetInput => ({
    name: label,
    minIdle: 0,
    max: 2,
    scaleDownDelay: '1s',
    intervals: SHORT_SET_INTERVALS,
    template: {
      ciServer: 'gitea',
      organization: 'acme',
      labels: [label],
      intervals: SHORT_INTERVALS,
      // For an image other than Gitea's own.
      pod: { spec: { securityContext: { runAsNonRoot: true, runAsUser: 1000 } } },
    },
  });

  test('installed: a job that Gitea announces runs in a pod, and nothing is left', async () => {
    await world.bring('install', TAG, {
      githubConfigUrl: undefined,
      githubConfigSecret: undefined,
      credentials: {
        default: {
          server: 'gitea',
          type: 'pat',
          tokenFile: '/etc/holdfast/credentials/gitea/token',
          apiUrl: `${gitea.access.urlForPods}/api/v1`,
        },
      },
      credentialSecrets: ['gitea'],
      runnerImage: giteaRunnerImage.reference,
      settings: { HOLDFAST_SHUTDOWN_GRACE_TIME: '2s', HOLDFAST_SHUTDOWN_FORCE_TIME: '5s' },
    });
    const { url } = await world.webhook();
    ({ id: hook } = await gitea.api<{ id: number }>('POST', '/orgs/acme/hooks', {
      type: 'gitea',
      active: true,
      events: ['workflow_job'],
      config: { url: `${url}/webhooks/gitea`, content_type: 'json', secret: WEBHOOK_SECRET },
    }));
    await world.client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(label),
      taskQueue: world.taskQueue,
      args: [set()],
    });
    await until('the set to be listed', async () => (await world.running()).length === 1);
    const { id } = await gitea.queueJob(REPOSITORY, [label], 'echo in $HOSTNAME');
    const job = await gitea.waitForJob(REPOSITORY, id, 'completed');
    expect(job).toMatchObject({ conclusion: 'success' });
    expect(await gitea.jobLog(REPOSITORY, id)).toMatch(/^\S+ in runner-/m);
    await until('its runner to be gone', async () => (await world.running()).length === 1);
    expect(await gitea.runners()).toEqual([]);
  }, 420_000);
});
