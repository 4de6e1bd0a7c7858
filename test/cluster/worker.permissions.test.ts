/**
 * The rights of deploy/rbac.yaml, on a real API server: with them lives come to their end, and of each that is missing is told by name. And those of
 * deploy/rbac-viewer.yaml, which change nothing.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreV1Api } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { checkCompute } from '../../worker/checks/computeCheck.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { actAs, applyManifest } from '../support/clusterAccounts.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { holdfastWorld, type HoldfastWorld, type RunnerRun } from '../support/holdfastWorld.ts';
import { MAKES_JOB_PODS, makeJobObjects } from '../support/jobObjects.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import {
  actAsShippedWorker,
  shippedPermissions,
  type ShippedPermission,
} from '../support/shippedRole.ts';
import { until } from '../support/until.ts';

/** No scheduler gets the pods: the harness plays their kubelet. */
const POD: Partial<RunnerInput> = {
  pod: { spec: { schedulerName: 'contract' } },
  supervisor: 'none',
};
const CLAIMS: Partial<RunnerInput> = {
  volumeClaims: [{ name: 'state', mountPath: '/state', storage: '1Gi' }],
};

await describeWithLab(
  'the permissions of the worker',
  { temporal: true, kubernetes: true },
  (lab) => {
    let harness: KubernetesHarness;
    let ci: FakeCiServer;
    let compute: KubernetesCompute;
    let world: HoldfastWorld | undefined;
    let folder: string;
    const runs: RunnerRun[] = [];
    /** Besides what the lives tell. */
    const failures: unknown[] = [];

    beforeEach(async () => {
      harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
      ci = new FakeCiServer();
      folder = mkdtempSync(join(tmpdir(), 'holdfast-rights-'));
    });
    afterEach(async () => {
      await world?.close();
      world = undefined;
      await harness.close();
      rmSync(folder, { recursive: true });
      runs.length = 0;
      failures.length = 0;
    });

    /** A worker with these rights. @returns a file with its credentials */
    async function open(without?: ShippedPermission): Promise<string> {
      const account = await actAsShippedWorker(harness, {
        jobPods: true,
        ...(without && { without }),
      });
      compute = harness.instance({ kubeConfig: account, jobPodNamespaces: [harness.namespace] });
      const podLogs = {
        maxBytes: 1_000,
        keep: async () => undefined,
        failed: (_of: object, error: unknown) => void failures.push(error),
      };
      world = await holdfastWorld(lab.temporal!.address, { compute, ciServers: ci, podLogs });
      const path = join(folder, 'kubeconfig');
      writeFileSync(path, account.exportConfig());
      return path;
    }

    async function start(input: Partial<RunnerInput> = {}): Promise<RunnerRun> {
      const run = await world!.start({ ...POD, ...input });
      runs.push(run);
      return run;
    }

    async function idle(
      input: Partial<RunnerInput> = {},
    ): Promise<{ run: RunnerRun; pod: PodView }> {
      const run = await start(input);
      const pod = (await harness.second.getPod({ name: await run.pod() }))!;
      await harness.makeRunning(pod);
      ci.connect((await run.status()).runnerName ?? '');
      await run.reaches('Idle', ({ phase }) => phase === 'Idle');
      return { run, pod };
    }

    async function ended(): Promise<void> {
      const { pod } = await idle(CLAIMS);
      await harness.end(pod, 1);
    }
    async function unmakable(): Promise<void> {
      await start({ pod: { spec: { ...POD.pod?.spec, priorityClassName: 'none-such' } } });
    }
    async function withJobPods(): Promise<void> {
      const { pod } = await idle({
        pod: {
          spec: { ...POD.pod?.spec, containers: [{ name: 'runner', env: [MAKES_JOB_PODS] }] },
        },
      });
      await makeJobObjects(harness, pod.name, { scheduler: 'contract' });
    }
    const step = () =>
      ({ kind: 'container step', name: 'a-step', namespace: harness.namespace }) as const;
    const nothing = async (): Promise<void> => undefined;

    /** What a life, or the worker, does to need each of them. */
    const needing: Readonly<Record<string, () => Promise<unknown>>> = {
      'create pods': start,
      'get pods': unmakable, // what has become of it is looked at
      'list pods': nothing,
      'watch pods': nothing,
      'patch pods': async () => {
        const { run } = await idle({ supervisor: 'image' });
        // The stop reason for the supervisor.
        await run.handle.signal('cancel', {
          reason: 'a newer one',
          mode: 'stop',
          stopReason: 'superseded',
        });
      },
      'delete pods': ended,
      'get pods/log': ended,
      'create secrets': start,
      'get secrets': unmakable,
      'delete secrets': ended,
      'patch secrets': withJobPods,
      // Its sweep looks at one before it deletes it.
      'get jobs': async () =>
        await compute.ownedObjects?.get(step()).catch((error: unknown) => failures.push(error)),
      'list jobs': withJobPods,
      'watch jobs': withJobPods,
      'patch jobs': withJobPods,
      'delete jobs': async () =>
        await compute.ownedObjects
          ?.delete({
            ...step(),
            uid: 'u',
            resourceVersion: '1',
            createdAtMs: 0,
            onHold: false,
            terminating: false,
          })
          .catch((error: unknown) => failures.push(error)),
      'create persistentvolumeclaims': async () => await start(CLAIMS),
      'get persistentvolumeclaims': async () => await start(CLAIMS),
      'patch persistentvolumeclaims': async () => {
        const { run, pod } = await idle(CLAIMS);
        ci.setBusy((await run.status()).runnerName ?? '', true);
        await harness.vanish(pod);
      },
      'delete persistentvolumeclaims': ended,
      'get namespaces': async () =>
        await compute.location().catch((error: unknown) => failures.push(error)),
    };

    /** What an operator sees: why lives wait, how they ended, and the worker's log. */
    async function told(): Promise<string> {
      const lives = runs.map(async (run) => {
        const { status, raw } = await run.handle.describe();
        const pending = (raw.pendingActivities ?? []).map(
          ({ lastFailure }) => lastFailure?.message,
        );
        return [...pending, status.name === 'RUNNING' ? undefined : (await run.result()).message];
      });
      const logged = harness.log.map(({ fields }) => ('err' in fields ? fields.err : undefined));
      return [
        ...(await Promise.all(lives)).flat(),
        ...logged.map(String),
        ...failures.map(String),
      ].join('\n');
    }

    test('are sufficient for a whole lifecycle', async () => {
      const path = await open();
      expect(await findings(path)).toEqual([
        { level: 'ok', message: expect.stringContaining('has all permissions') },
      ]);
      await ended();
      expect(await runs[0]?.result()).toMatchObject({ outcome: 'failed', attempt: 1 });
      const { core, namespace } = harness;
      const left = await Promise.all([
        core.listNamespacedPod({ namespace }),
        core.listNamespacedSecret({ namespace }),
        core.listNamespacedPersistentVolumeClaim({ namespace }),
      ]);
      // A claim that was mounted waits for its pod's end, which Kubernetes' own controller sees to.
      expect(
        left.map(
          ({ items }) =>
            items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined).length,
        ),
      ).toEqual([0, 0, 0]);
      expect(await told()).not.toContain('forbidden');
    }, 120_000);

    async function findings(path: string): ReturnType<typeof checkCompute> {
      return await checkCompute(
        loadConfig({
          HOLDFAST_GITHUB_TOKEN: 'x',
          HOLDFAST_KUBECONFIG: path,
          HOLDFAST_KUBERNETES_NAMESPACE: harness.namespace,
          HOLDFAST_JOB_POD_NAMESPACES: harness.namespace,
        }),
      );
    }

    test.each(
      shippedPermissions.map(
        (permission) => [`${permission.verb} ${permission.resource}`, permission] as const,
      ),
    )(
      'without "%s" the check names it, and so does what needs it',
      async (name, permission) => {
        const path = await open(permission);
        const missing = expect.stringMatching(
          `may not, in namespace "${harness.namespace}": ${name}( "kube-system")?$`,
        );
        expect(await findings(path)).toEqual([
          { level: 'error', message: missing, fix: expect.stringContaining('kubectl apply') },
        ]);
        await needing[name]!();
        let last = '';
        await until(
          'it to be told',
          async () =>
            (last = await told()).includes(
              `cannot ${permission.verb} resource "${permission.resource}"`,
            ),
          () => last,
        );
      },
      120_000,
    );

    test('a read-only user sees pods, but changes nothing and reads no Secret and no log', async () => {
      const { core, namespace, kubeConfig } = harness;
      await core.createNamespacedServiceAccount({
        namespace,
        body: { metadata: { name: 'viewer' } },
      });
      const manifest = readFileSync(
        new URL('../../deploy/rbac-viewer.yaml', import.meta.url),
        'utf8',
      );
      // A service account is in the group of its namespace's.
      await applyManifest(
        kubeConfig,
        manifest
          .replaceAll('namespace: holdfast-runners', `namespace: ${namespace}`)
          .replace('name: holdfast-viewers', `name: system:serviceaccounts:${namespace}`),
      );
      const viewer = (await actAs('viewer', harness)).makeApiClient(CoreV1Api);
      const body = {
        metadata: { name: 'prey' },
        spec: { schedulerName: 'contract', containers: [{ name: 'runner', image: 'prey' }] },
      };
      await core.createNamespacedPod({ namespace, body });
      await core.createNamespacedSecret({ namespace, body: { metadata: { name: 'prey' } } });
      await until(
        'its rights to be in force',
        async () =>
          await viewer.listNamespacedPod({ namespace }).then(
            ({ items }) => items.length === 1,
            () => false,
          ),
      );
      expect(await viewer.readNamespacedPod({ namespace, name: 'prey' })).toMatchObject({
        metadata: { name: 'prey' },
      });
      expect(await viewer.listNamespacedEvent({ namespace })).toMatchObject({ kind: 'EventList' });
      const refused: readonly (() => Promise<unknown>)[] = [
        async () =>
          await viewer.createNamespacedPod({
            namespace,
            body: { ...body, metadata: { name: 'another' } },
          }),
        async () => await viewer.replaceNamespacedPod({ namespace, name: 'prey', body }),
        async () =>
          await viewer.patchNamespacedPod({
            namespace,
            name: 'prey',
            body: [{ op: 'add', path: '/metadata/annotations', value: {} }],
          }),
        async () => await viewer.deleteNamespacedPod({ namespace, name: 'prey' }),
        async () => await viewer.readNamespacedPodLog({ namespace, name: 'prey' }),
        async () => await viewer.listNamespacedSecret({ namespace }),
        async () => await viewer.readNamespacedSecret({ namespace, name: 'prey' }),
        async () =>
          await viewer.createNamespacedSecret({
            namespace,
            body: { metadata: { name: 'another' } },
          }),
        async () => await viewer.deleteNamespacedSecret({ namespace, name: 'prey' }),
      ];
      for (const attempt of refused) await expect(attempt()).rejects.toMatchObject({ code: 403 });
    }, 120_000);
  },
);
