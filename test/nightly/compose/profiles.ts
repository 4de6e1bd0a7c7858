import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { GITHUB_RUNNER } from '../../../core/domain/runnerKinds/gitHub.ts';
import type { LabState } from '../../../tools/lab/lab.ts';
import { freePort } from '../../../tools/lab/ports.ts';
import { startSimulator, type Simulator } from '../../../tools/simulator/simulator.ts';
import { inContainer } from '../../support/podLog.ts';
import { createTestNamespace, type TestNamespace } from '../../support/pods.ts';
import { Relay } from '../../support/relay.ts';
import { until } from '../../support/until.ts';
import { ComposeProject } from './composeProject.ts';
import type { Engine } from './engine.ts';
import { say, timed } from './tell.ts';

export const PROFILES: readonly string[] = ['dev', 'full'];

/** What a profile runs in: a project of Docker Compose, and what its worker is given. */
interface World {
  readonly project: ComposeProject;
  readonly github: Simulator;
  readonly namespace: TestNamespace;
}

/** Brings the profile up, runs jobs through it, and takes it down. @throws Error after it has told what every container said */
export async function checkProfile(
  engine: Engine,
  lab: LabState,
  profile: string,
  folder: string,
): Promise<void> {
  const { hostAddress: host = '', kubernetes } = lab;
  const github = await startSimulator({ host });
  const relay = await Relay.open(host, new URL(kubernetes?.server ?? ''));
  const namespace = await createTestNamespace(kubernetes?.kubeconfig ?? '', `compose-${profile}`);
  const kubeconfig = join(folder, 'kubeconfig');
  await mkdir(folder, { recursive: true });
  await writeFile(
    kubeconfig,
    kubeconfigAt(kubernetes?.kubeconfig ?? '', `https://${host}:${relay.port}`),
  );
  // Those of the file may be taken here.
  const [temporal, ui, worker] = [await freePort(), await freePort(), await freePort()];
  const ports = {
    TEMPORAL_PORT: String(temporal),
    TEMPORAL_UI_PORT: String(ui),
    WORKER_PORT: String(worker),
  };
  const settings = {
    KUBECONFIG: kubeconfig,
    HOLDFAST_GITHUB_TOKEN: 'ghp_simulator',
    HOLDFAST_GITHUB_URL: github.url,
    HOLDFAST_KUBERNETES_NAMESPACE: namespace.name,
    HOLDFAST_RUNNER_IMAGE: GITHUB_RUNNER.image.name,
  };
  const project = new ComposeProject(engine, profile, { ...settings, ...ports });
  const world = { project, github, namespace };
  try {
    await project.down(); // what a check that was ended has left
    const { seconds } = await timed(async () => await project.up());
    say(`profile ${profile}: healthy in ${seconds} s`);
    const doctor = await project.compose('exec', '-T', 'worker', 'holdfast', 'doctor');
    assert.doesNotMatch(doctor, /^(warning|error) /m, doctor);
    assert.match(await (await fetch(`http://127.0.0.1:${ui}/`)).text(), /<html/i);
    assert.equal((await fetch(`http://127.0.0.1:${worker}/readyz`)).status, 200);
    say(`profile ${profile}: doctor finds nothing to mend; Temporal's UI is there`);
    await runsJob(world);
    await keepsJob(world);
    await project.down();
    assert.deepEqual(await project.left(), [], 'docker compose down --volumes has left something');
    say(`profile ${profile}: nothing is left of it`);
  } catch (error) {
    process.stderr.write(await project.explain().catch(String));
    throw error;
  } finally {
    await project.down();
    await namespace.remove();
    relay.close();
    await github.stop();
  }
}

async function runsJob({ project, github }: World): Promise<void> {
  const { id } = github.queueJob({
    repo: 'acme/app',
    labels: [project.profile],
    command: 'echo from the job',
  });
  const { result: told, seconds } = await timed(
    async () =>
      await project.compose(
        'exec',
        '-T',
        'worker',
        'holdfast',
        'run',
        '--org',
        'acme',
        '--labels',
        project.profile,
      ),
  );
  assert.deepEqual([github.job(id)?.conclusion, github.runners().length], ['success', 0], told);
  say(`profile ${project.profile}: a job ran on a runner in a pod, in ${seconds} s`);
}

/** A job runs while the worker's process is killed, its container is restarted, and all containers are made anew. */
async function keepsJob({ project, github, namespace }: World): Promise<void> {
  const { id } = github.queueJob({
    repo: 'acme/app',
    labels: [project.profile],
    command: 'echo begun; until [ -e /tmp/let-go ]; do sleep 1; done; echo finished',
  });
  const runner = (
    await project.compose(
      'exec',
      '-T',
      'worker',
      'holdfast',
      'runner',
      'start',
      '--org',
      'acme',
      '--labels',
      project.profile,
      '-o',
      'name',
    )
  ).trim();
  await github.waitFor(() => github.job(id)?.output.includes('begun') === true, 'the job to begin');
  await project.kill('worker');
  await project.untilUp();
  await project.compose('restart', 'worker');
  await project.untilUp();
  await project.compose('down');
  await project.up();
  const { items } = await namespace.core.listNamespacedPod({ namespace: namespace.name });
  assert.deepEqual(
    [items.length, github.job(id)?.status],
    [1, 'in_progress'],
    'the job went on in its pod',
  );
  for (const { metadata } of items)
    await inContainer(namespace, metadata?.name ?? '', 'touch /tmp/let-go');
  const outcome = async (): Promise<string | undefined> =>
    (
      JSON.parse(
        await project.compose(
          'exec',
          '-T',
          'worker',
          'holdfast',
          'runner',
          'get',
          runner,
          '--json',
        ),
      ) as { end?: { outcome: string } }
    ).end?.outcome;
  await until(`${runner} to end`, async () => (await outcome()) !== undefined);
  const { conclusion, assignments } = github.job(id) ?? {};
  const seen = {
    outcome: await outcome(),
    conclusion,
    assignments,
    registered: github.runners().length,
  };
  assert.deepEqual(seen, {
    outcome: 'succeeded',
    conclusion: 'success',
    assignments: 1,
    registered: 0,
  });
  say(
    `profile ${project.profile}: a job outlived SIGKILL of its worker, a restart, and down and up`,
  );
}

/** The same cluster at an address that containers reach, by a name of its certificate's. */
function kubeconfigAt(path: string, server: string): string {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const cluster = {
    ...config.getCurrentCluster()!,
    server,
    tlsServerName: 'kubernetes.default.svc',
  };
  config.clusters = [cluster];
  return config.exportConfig();
}
