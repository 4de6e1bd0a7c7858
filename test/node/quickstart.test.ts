/** docs/quickstart.md in a cluster, block after block, on a real node: installed, a job that GitHub announces runs and is seen by everybody who should see it, and away again. */
import { RbacAuthorizationV1Api } from '@kubernetes/client-node';
import { ScheduleNotFoundError } from '@temporalio/client';
import { parse, stringify } from 'yaml';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { sweepScheduleId } from '../../core/contract/index.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { Browser, findChromium } from '../support/browser.ts';
import { CHART_TOKEN, ChartWorld, RUNNER_SECURITY } from '../support/chartWorld.ts';
import { HELD_JOB, letGo } from '../support/clusterRun.ts';
import { shippedDashboards } from '../support/dashboards.ts';
import { describeIf, ensureLab } from '../support/lab.ts';
import { Prometheus } from '../support/prometheus.ts';
import { quickstartBlock } from '../support/quickstart.ts';
import { QuickstartShell } from '../support/quickstartShell.ts';
import { until, untilSeen } from '../support/until.ts';

const NEEDS = { temporal: true, nodes: 'kubelet' } as const;
const TAG = '1';
const startedAt = Date.now();
const told = (what: string): void =>
  void process.stderr.write(
    `[quickstart] ${what} after ${Math.round((Date.now() - startedAt) / 1_000)} s\n`,
  );

async function prepare(): Promise<Awaited<ReturnType<typeof ensureLab>>> {
  findChromium();
  return await ensureLab(NEEDS);
}

await describeIf('docs/quickstart.md, in a cluster', prepare, NEEDS, (lab) => {
  let world: ChartWorld;
  let shell: QuickstartShell;
  let browser: Browser;
  beforeAll(async () => {
    world = await ChartWorld.open(lab, [TAG], {
      home: 'holdfast',
      runners: 'holdfast-runners',
      taskQueue: 'holdfast',
    });
    [shell, browser] = await Promise.all([QuickstartShell.open(lab), Browser.open()]);
  }, 180_000);
  afterAll(async () => {
    await browser.close();
    shell.close();
    await world.close();
  }, 120_000);

  const now = ({ id }: SimulatedJob): SimulatedJob => world.simulator.job(id)!;
  /** Of a panel's first query, as Grafana would ask it. */
  const panel = (title: string): string => {
    const { targets } = shippedDashboards()
      .flatMap(({ panels }) => panels)
      .find((each) => each.title === title)!;
    return targets[0]!.expr;
  };

  /** What the chart made, as `namespace/name`. */
  async function left(): Promise<string[]> {
    const { core, kubeConfig } = world.home;
    const rbac = kubeConfig.makeApiClient(RbacAuthorizationV1Api);
    const labelSelector = 'app.kubernetes.io/managed-by=Helm';
    const lists = [world.home.name, world.runners.name].flatMap((namespace) => [
      core.listNamespacedPod({ namespace }),
      core.listNamespacedSecret({ namespace }),
      core.listNamespacedService({ namespace }),
      rbac.listNamespacedRole({ namespace }),
      rbac.listNamespacedRoleBinding({ namespace }),
    ]);
    const inSystem = [
      rbac.listNamespacedRole({ namespace: 'kube-system', labelSelector }),
      rbac.listNamespacedRoleBinding({ namespace: 'kube-system', labelSelector }),
    ];
    return (await Promise.all([...lists, ...inSystem]))
      .flatMap(({ items }) =>
        items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`),
      )
      .toSorted();
  }

  test('every block, in order', async () => {
    const values = parse(quickstartBlock('cluster, values', 'yaml')) as {
      githubConfigSecret: string;
      sets: [object];
    };
    const more = {
      githubConfigSecret: values.githubConfigSecret,
      sets: values.sets.map((set) => ({ ...set, template: { spec: RUNNER_SECURITY } })),
    };
    const ofMachine = world.values(TAG, more);
    // Every value of the page is said, and then what is otherwise on this machine.
    shell.write(
      'values.yaml',
      stringify({
        ...values,
        ...ofMachine,
        settings: {
          ...(ofMachine['settings'] as object),
          HOLDFAST_TEMPORAL_UI_URL: lab.temporal?.uiUrl,
        },
      }),
    );
    shell.write('github-token', CHART_TOKEN);

    expect(await shell.run('cluster, install')).toContain(
      'workers in holdfast, runners in holdfast-runners',
    );
    told('installed');
    await world.leadWebhook(shell.read('webhook-secret').trim());
    const looked = await shell.run('cluster, look');
    expect(looked).toMatch(/linux/);

    const job = world.simulator.queueJob({
      repo: 'acme/app',
      labels: ['linux'],
      command: HELD_JOB,
    });
    await until(
      'the job to run',
      () => now(job).output.includes('begun'),
      () => JSON.stringify(now(job)),
      120_000,
    );
    const runner = runnerWorkflowIdFromName('linux', now(job).runner_name ?? '') ?? '';
    told(`a job runs on ${runner}`);
    const seen = await untilSeen(
      'its runner to be listed as busy',
      async () => await shell.run('cluster, job'),
      (said) => new RegExp(`${runner} +Busy`).test(said),
    );
    const lists = [...seen.matchAll(/in Temporal's UI: (\S+)/g)].map(([, url = '']) => url);
    await browser.see(lists.find((url) => url.includes('Busy')) ?? seen, 'quickstart-list', [
      runner,
      'Running',
    ]);
    const { runId } = await world.client.workflow.getHandle(runner).describe();
    const page = `${lab.temporal?.uiUrl}/namespaces/default/workflows/${runner}/${runId}`;
    await browser.see(`${page}/history`, 'quickstart-runner', [
      runner,
      'Register the runner, create its pod',
    ]);
    await browser.see(`${page}/search-attributes`, 'quickstart-attributes', [
      runner,
      'Busy',
      'linux',
    ]);
    told('seen in the UI');
    const workers = await world.pods('worker');
    const prometheus = await Prometheus.start(workers.map(({ status }) => `${status?.podIP}:8080`));
    try {
      await until(
        'the dashboard to show it',
        async () => (await prometheus.query(panel('Jobs that run'))).join() === '1',
        () => '',
        60_000,
      );
    } finally {
      await prometheus.stop();
    }
    told('seen on the dashboard');

    const byHand = await shell.run('cluster, by hand', (script) =>
      script.replace('"labels"', `"pod": ${JSON.stringify({ spec: RUNNER_SECURITY })}, "labels"`),
    );
    expect(byHand).toContain('was only a try');
    told('a runner by hand');

    const [pod] = (await world.runners.core.listNamespacedPod({ namespace: world.runners.name }))
      .items;
    const uninstalled = shell.run('cluster, uninstall');
    const isOver = uninstalled.then(
      () => true,
      () => true,
    );
    await until(
      'the set to end',
      async () => (await querySetStatus(world.client, 'set-linux')).deleting !== undefined,
    );
    expect(now(job).status).toBe('in_progress');
    expect(await Promise.race([isOver, Promise.resolve(false)])).toBe(false);
    await letGo(world.runners, pod?.metadata?.name ?? '');
    await uninstalled;
    told('away again');
    const { conclusion, assignments, annotation, output } = now(job);
    expect({
      conclusion,
      assignments,
      annotation,
      interrupted: output.includes('interrupted'),
    }).toEqual({
      conclusion: 'success',
      assignments: 1,
      annotation: undefined,
      interrupted: false,
    });
    expect(
      (await world.runners.core.readNamespace({ name: world.runners.name })).status?.phase,
    ).toBe('Active');
    await until('nothing to be listed', async () => (await world.running()).length === 0);
    expect(world.simulator.runners()).toEqual([]);
    await expect(
      world.client.schedule.getHandle(sweepScheduleId(world.taskQueue)).describe(),
    ).rejects.toThrow(ScheduleNotFoundError);
    await until(
      "nothing but the user's own to be left",
      async () =>
        JSON.stringify(await left()) === '["holdfast/holdfast-github","holdfast/holdfast-webhook"]',
      () => '',
      60_000,
    );

    await shell.run('cluster, end');
    const { items: namespaces } = await world.home.core.listNamespace();
    const names = namespaces.map(({ metadata }) => metadata?.name);
    expect(names).not.toContain(world.home.name);
    expect(names).not.toContain(world.runners.name);
  }, 900_000);
});
