import { randomUUID } from 'node:crypto';
import {
  CoreV1Api,
  PatchStrategy,
  setHeaderOptions,
  type KubeConfig,
  type V1ContainerState,
  type V1PodStatus,
} from '@kubernetes/client-node';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import {
  createKubernetesCompute,
  type KubernetesCompute,
  type KubernetesComputeOptions,
} from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import {
  podPolicySchema,
  type PodPolicy,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import type { ComputeContractHarness } from './computeContract.ts';
import { until } from './until.ts';
import type { PodRef, PodRequest, RunnerIdentity } from '../../core/domain/pod.ts';

export interface KubernetesHarness extends ComputeContractHarness {
  readonly compute: KubernetesCompute;
  readonly second: KubernetesCompute;
  readonly kubeConfig: KubeConfig;
  readonly namespace: string;
  readonly core: CoreV1Api;
  /** Log of the compute. */
  readonly log: { level: 'info' | 'warn'; fields: object; message: string }[];
  /** One more instance over the same state. */
  instance(options?: Partial<KubernetesComputeOptions>): KubernetesCompute;
  /** Merges into the pod's status, as a kubelet would. */
  patchStatus(pod: PodRef, status: V1PodStatus): Promise<void>;
}

/**
 * No scheduler has this name, so that the pods are not scheduled to a real node of the same lab.
 */
const SCHEDULER = 'contract';

/**
 * The default policy, except for fields that keep the pods from a real node, and without a priority
 * class, which the API server does not have.
 */
export const HARNESS_POLICY: PodPolicy = podPolicySchema.parse({
  fields: ['schedulerName'],
  priorityClasses: ['none-such'],
});

/**
 * Starts Kubernetes compute in a namespace of its own. Pods are bound to a node without a kubelet,
 * and the harness writes their status. The node exists, because the cluster deletes pods of a
 * missing node within a minute.
 */
export async function startKubernetesHarness(kubeconfig: string): Promise<KubernetesHarness> {
  const kubeConfig = loadKubeConfig({ path: kubeconfig });
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const namespace = `contract-${randomUUID().slice(0, 8)}`;
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  await core.createNode({ body: { metadata: { name: namespace } } });
  await until('the namespace has its service account', async () =>
    (await core.listNamespacedServiceAccount({ namespace })).items.some(
      ({ metadata }) => metadata?.name === 'default',
    ),
  );
  const log: KubernetesHarness['log'] = [];
  const instances: KubernetesCompute[] = [];
  const instance = (options: Partial<KubernetesComputeOptions> = {}): KubernetesCompute => {
    const compute = createKubernetesCompute({
      kubeConfig,
      namespace,
      installation: 'contract',
      podDefaults: { image: 'busybox' },
      policy: { ...HARNESS_POLICY, claims: ['*'] },
      logger: {
        info: (fields, message) => log.push({ level: 'info', fields, message }),
        warn: (fields, message) => log.push({ level: 'warn', fields, message }),
      },
      ...options,
    });
    instances.push(compute);
    return compute;
  };

  async function patchStatus({ name }: PodRef, status: V1PodStatus): Promise<void> {
    await core.patchNamespacedPodStatus(
      { name, namespace, body: { status } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
  }

  async function vanish({ name, uid }: PodRef): Promise<void> {
    await core
      .deleteNamespacedPod({
        name,
        namespace,
        body: { gracePeriodSeconds: 0, preconditions: { uid } },
      })
      .catch((error: { code?: number }) => {
        if (error.code !== 404) throw error;
      });
  }

  return {
    compute: instance(),
    second: instance(),
    kubeConfig,
    namespace,
    core,
    log,
    instance,
    patchStatus,
    newIdentity: (): RunnerIdentity => ({
      workflowId: `runner-${randomUUID()}`,
      firstRunId: randomUUID(),
      attempt: 1,
    }),
    request: (identity): PodRequest => ({
      identity,
      template: { spec: { schedulerName: SCHEDULER } },
      labels: { 'holdfast.dev/set': 'test' },
      terminationGracePeriodSeconds: 20,
    }),
    async makeRunning(pod) {
      await core.createNamespacedPodBinding({
        name: pod.name,
        namespace,
        body: {
          metadata: { name: pod.name },
          target: { apiVersion: 'v1', kind: 'Node', name: namespace },
        },
      });
      await patchStatus(pod, {
        phase: 'Running',
        containerStatuses: [runnerStatus({ running: { startedAt: now() } }, true)],
      });
    },
    async end(pod, exitCode) {
      const terminated = {
        exitCode,
        startedAt: now(),
        finishedAt: now(),
        reason: exitCode === 0 ? 'Completed' : 'Error',
      };
      await patchStatus(pod, {
        phase: exitCode === 0 ? 'Succeeded' : 'Failed',
        containerStatuses: [runnerStatus({ terminated }, false)],
      });
    },
    vanish,
    finishTermination: vanish,
    async close() {
      for (const compute of instances) await compute.close();
      await core.deleteNamespace({ name: namespace });
      await core.deleteNode({ name: namespace });
    },
  };
}

function runnerStatus(
  state: V1ContainerState,
  running: boolean,
): NonNullable<V1PodStatus['containerStatuses']>[number] {
  return {
    name: 'runner',
    image: 'busybox',
    imageID: '',
    ready: running,
    started: running,
    restartCount: 0,
    state,
  };
}

/** A time in whole seconds, as the kubelet writes it. */
function now(): Date {
  return new Date(Math.floor(Date.now() / 1000) * 1000);
}
