/** actions-runner-controller and Holdfast on one cluster, in one namespace, for the same labels: each minds its own. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KubernetesObject } from '@kubernetes/client-node';
import { INSTALLATION_LABEL } from '../../../activities/compute/kubernetes/metadata.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type SweepReport,
} from '../../../core/contract/index.ts';
import { MANAGED_BY_LABEL } from '../../../core/domain/podTemplate.ts';
import { podTemplateErrors } from '../../../core/input/podTemplate.ts';
import { up, type LabState } from '../../../tools/lab/lab.ts';
import type { SimulatedJob } from '../../../tools/simulator/types.ts';
import { arcFiles, type ArcFiles } from '../../support/arc/arcManagers.ts';
import {
  autoscaler,
  runnerDeployment,
  runnerSet,
  scaleSet,
  SCALE_SETS,
} from '../../support/arc/arcObjects.ts';
import { ORGANIZATION, SharedCluster } from '../../support/arc/sharedCluster.ts';
import { CHART, Helm, PLAIN_VALUES } from '../../support/chart.ts';
import { runCli } from '../../support/cli.ts';
import { SHORT_INTERVALS } from '../../support/clusterRun.ts';
import { describeIf } from '../../support/lab.ts';
import { arcLabFolder } from '../../support/labFolder.ts';
import { SHORT_SET_INTERVALS } from '../../support/setRun.ts';
import { sweepAtOnce } from '../../support/sweepCli.ts';

const NEEDS = { temporal: true, nodes: 'kwok' } as const;
/** What a user's tools put on the pods of both, and ARC's RunnerSet selects its own by. */
const APP_LABELS = {
  app: 'ci',
  'app.kubernetes.io/name': 'runner',
  'app.kubernetes.io/part-of': 'ci',
};
/** Registrations of ARC's called as runners of Holdfast's are. */
const LOOK_ALIKES = ['linux-abcdefghij-0123456789', 'linux-klmnopqrst-9876543210-r2'];
const SECRET = 'arc-github';

const prepare = async (): Promise<{ files: ArcFiles; lab: LabState }> => ({
  files: await arcFiles(),
  lab: await up({ stateDir: arcLabFolder(), nodes: 'kwok' }),
});

await describeIf('Holdfast and ARC in one cluster', prepare, NEEDS, ({ files, lab }) => {
  let cluster: SharedCluster;
  beforeAll(async () => {
    cluster = await SharedCluster.open(files, lab);
    await cluster.startArc();
  }, 180_000);
  afterAll(async () => await cluster.close(), 120_000);

  const mine = (): string => cluster.world.namespace.name;
  /** ARC's, of the first mode. The pods of one have the labels of Holdfast's own, as a user may have copied them. */
  const shared = (): KubernetesObject =>
    runnerDeployment(mine(), 'linux', 2, {
      [MANAGED_BY_LABEL]: 'holdfast',
      [INSTALLATION_LABEL]: mine(),
      ...APP_LABELS,
    });
  const apart = (): KubernetesObject =>
    runnerDeployment(cluster.other.name, 'apart', 1, APP_LABELS);
  const stateful = (): KubernetesObject => runnerSet(mine(), 'stateful', APP_LABELS);
  const scaled = (): KubernetesObject =>
    scaleSet(mine(), 'scale', cluster.service.configUrl, SECRET);
  const queue = (labels: string[]): SimulatedJob =>
    cluster.world.simulator.queueJob({ repo: `${ORGANIZATION}/app`, labels, sleepMs: 300 });
  const idOf = ({ id }: { id: number }): number => id;
  /** What is there, of ARC's and of all others, and is there afterwards, too. */
  const kept = (): { objects: string[]; registrations: number[] } => ({
    objects: cluster.ledger.present(false),
    registrations: cluster.registrations(false).map(idOf),
  });
  const expectKept = ({ objects, registrations }: ReturnType<typeof kept>): void => {
    expect(cluster.ledger.present(false)).toEqual(expect.arrayContaining(objects));
    expect(cluster.registrations(false).map(idOf)).toEqual(expect.arrayContaining(registrations));
  };
  /** Its autoscaler may have added one. */
  const arcIsAtRest = async (): Promise<void> =>
    await cluster.until("ARC's runners to wait for jobs", () => cluster.idle(false).length >= 6);
  const holdfastIsAtRest = async (): Promise<void> =>
    await cluster.until(
      "Holdfast's runners to wait for jobs",
      () => cluster.idle(true).length === 2,
    );

  test('both have runners for the same labels, and jobs run on either', async () => {
    await cluster.makeScaleSetSecret(SECRET);
    await cluster.make(
      shared(),
      apart(),
      autoscaler(cluster.other.name, 'apart'),
      stateful(),
      scaled(),
    );
    await cluster.until(
      'the scale set to be registered',
      async () => (await cluster.list(SCALE_SETS, 'EphemeralRunnerSet')).length === 1,
    );
    for (const set of await cluster.list(SCALE_SETS, 'EphemeralRunnerSet'))
      await cluster.resize({ apiVersion: SCALE_SETS, kind: 'EphemeralRunnerSet', ...set }, 2);
    await arcIsAtRest();
    const before = kept();

    await cluster.startWorker();
    const template = {
      organization: ORGANIZATION,
      labels: ['self-hosted', 'linux'],
      pod: { metadata: { labels: APP_LABELS } },
      intervals: SHORT_INTERVALS,
    };
    const input: RunnerSetInput = {
      name: 'linux',
      minIdle: 2,
      max: 4,
      scaleDownDelay: '1s',
      intervals: SHORT_SET_INTERVALS,
      template,
    };
    const { client, taskQueue } = cluster.world;
    await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId('linux'),
      taskQueue,
      args: [input],
    });
    await holdfastIsAtRest();
    expectKept(before);

    const jobs = [
      ...Array.from({ length: 10 }, () => queue(['self-hosted', 'linux'])),
      queue(['scale']),
      queue(['scale']),
      queue(['self-hosted', 'stateful']),
    ].map(idOf);
    const now = (): SimulatedJob[] =>
      jobs.map((id) => cluster.world.simulator.job(id) as SimulatedJob);
    await cluster.until('the jobs to be over', () =>
      now().every(({ status }) => status === 'completed'),
    );
    expect(
      now().filter(({ conclusion, assignments }) => conclusion !== 'success' || assignments !== 1),
    ).toEqual([]);
    await arcIsAtRest();
    await holdfastIsAtRest();
    cluster.expectNothingOfTheOthersTouched();
  }, 300_000);

  test("migrate arc reads ARC's objects, and writes nothing", async () => {
    const before = cluster.byAdmin.seen.length;
    const { status, stdout } = await runCli([
      'migrate',
      'arc',
      '--cluster',
      '--kubeconfig',
      cluster.adminKubeconfig,
      '--json',
    ]);
    expect(status).toBe(0);
    const { sets } = JSON.parse(stdout) as { sets: { set: RunnerSetInput }[] };
    expect(sets.map(({ set }) => set.name).toSorted()).toEqual([
      'apart',
      'linux',
      'scale',
      'stateful',
    ]);
    const requests = cluster.byAdmin.seen.slice(before);
    expect(requests.length).toBeGreaterThan(5);
    expect(
      requests.filter(({ method, url }) => method !== 'GET' || url.pathname.includes('secrets')),
    ).toEqual([]);
  });

  test("sweeps repair only what is Holdfast's, whatever the state of ARC's pods and registrations", async () => {
    for (const name of LOOK_ALIKES) await cluster.registerForArc(name);
    const { world, other } = cluster;
    const silent = cluster.idle(false).find((name) => name.startsWith('apart-')) ?? '';
    cluster.runners.kill(
      (await other.core.readNamespacedPod({ namespace: other.name, name: silent })).metadata?.uid ??
        '',
    );
    const run = await world.start('leftover', {
      organization: ORGANIZATION,
      labels: ['self-hosted', 'nobody-asks'],
    });
    const { pod, runnerName } = await run.listens();
    await run.handle.terminate('by hand');
    await cluster.until(
      'its end to be listed',
      async () =>
        (
          await world.client.workflow.count(
            `WorkflowId = '${run.handle.workflowId}' AND ExecutionStatus = 'Terminated'`,
          )
        ).count === 1,
    );
    await cluster.until(
      'the silent one to be offline',
      () => world.simulator.runner(silent)?.status === 'offline',
    );
    const before = kept();

    const settings = cluster.commandSettings;
    expect(await runCli(['sweep', '--dry-run', '--standalone'], settings)).toMatchObject({
      status: 0,
    });
    for (const done of ['marked', 'repaired']) {
      const report = JSON.parse((await sweepAtOnce(settings, true)).stdout) as SweepReport;
      expect(report).toMatchObject({
        incompleteLists: [],
        findings: [{ kind: 'orphaned_pod', name: pod, status: done }],
      });
      // Two pods with Holdfast's labels at the least; all registrations of ARC's.
      expect(report.skipped['foreign']).toBeGreaterThanOrEqual(2 + before.registrations.length);
    }
    await cluster.until(
      'the leftover to be gone',
      () => world.simulator.runner(runnerName) === undefined,
    );
    expect(JSON.parse((await sweepAtOnce(settings, true)).stdout)).toMatchObject({
      incompleteLists: [],
      items: [],
    });
    expectKept(before);
    cluster.expectNothingOfTheOthersTouched();
  }, 300_000);

  test("Holdfast's chart is installed among ARC's objects, and uninstalled", async () => {
    const before = kept();
    const helm = await Helm.find(cluster.adminKubeconfig);
    const at = ['--namespace', cluster.home.name, '--no-hooks'];
    const values = { ...PLAIN_VALUES, runnersNamespace: cluster.other.name };
    await helm.run('install', 'holdfast', CHART, ...at, ...helm.values(values));
    expectKept(before);
    await helm.run('uninstall', 'holdfast', ...at);
    helm.close();
    expectKept(before);
    cluster.expectNothingOfTheOthersTouched();
  }, 120_000);

  test("ARC scales down and removes a scale set without an effect on Holdfast's runners", async () => {
    const before = cluster.ledger.present(true);
    expect(before.length).toBeGreaterThanOrEqual(4);
    await cluster.resize(shared(), 1);
    await cluster.remove(scaled());
    const pods = (): string[] =>
      cluster.ledger.present(false).filter((key) => /^pods \S+\/(linux|scale)-/.test(key));
    await cluster.until(
      'one pod of theirs to be left',
      () => pods().length === 1,
      () => pods().join(),
    );
    await cluster.until('the scale set to be gone', () => cluster.service.names.length === 0);
    expect(cluster.ledger.present(true)).toEqual(before);
    expect(cluster.idle(true)).toHaveLength(2);
    cluster.expectNothingOfTheOthersTouched();
  }, 300_000);

  test('ARC adopts every pod with one of its labels, so Holdfast rejects such a template', async () => {
    const { core, name: namespace } = cluster.other;
    const labels = ['actions-runner', 'runnerset-name', 'runner-deployment-name'];
    for (const label of labels) {
      expect(podTemplateErrors({ metadata: { labels: { [label]: 'x' } } })).toEqual([
        expect.stringContaining(label),
      ]);
      await core.createNamespacedPod({
        namespace,
        body: {
          metadata: { name: `has-${label}`, labels: { [label]: 'x' } },
          spec: { containers: [{ name: 'runner', image: 'x', env: [{ name: 'A', value: 'b' }] }] },
        },
      });
    }
    const taken = async (label: string): Promise<boolean> =>
      (
        await core.readNamespacedPod({ namespace, name: `has-${label}` })
      ).metadata?.finalizers?.includes('actions.summerwind.dev/runner-pod') === true;
    await cluster.until("ARC's finalizer on each", async () =>
      (await Promise.all(labels.map(taken))).every(Boolean),
    );
    for (const label of labels) await core.deleteNamespacedPod({ namespace, name: `has-${label}` });
    await cluster.until('them to be gone', () =>
      cluster.ledger.present(false).every((key) => !key.includes('/has-')),
    );
  }, 120_000);

  test('decommission ends everything of Holdfast and nothing of ARC; ARC then ends its own', async () => {
    const before = kept();
    expect(await runCli(['decommission', '--yes'], cluster.commandSettings)).toMatchObject({
      status: 0,
    });
    await cluster.until(
      "Holdfast's objects to be gone",
      () => cluster.ledger.present(true).length === 0,
    );
    expect(cluster.registrations(true)).toEqual([]);
    expectKept(before);

    await cluster.remove(autoscaler(cluster.other.name, 'apart'), shared(), apart(), stateful());
    const left = (): string[] =>
      cluster.ledger.present(false).filter((key) => /^(pods|runners) /.test(key));
    await cluster.until(
      "ARC's runners to be gone",
      () => left().length === 0,
      () => left().join(),
    );
    const counts = cluster.expectNothingOfTheOthersTouched();
    // It has looked at something.
    for (const [what, count] of Object.entries(counts))
      expect({ what, any: count > 0 }).toEqual({ what, any: true });
    process.stderr.write(`beside ARC: ${JSON.stringify(counts)}\n`);
  }, 300_000);
});
