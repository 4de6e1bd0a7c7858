/**
 * Creates the objects that GitHub's container hooks create for a job:
 * https://github.com/actions/runner-container-hooks/blob/main/packages/k8s/src/k8s/index.ts.
 */
import { randomUUID } from 'node:crypto';
import {
  BatchV1Api,
  CoreV1Api,
  type KubeConfig,
  type V1ObjectMeta,
  type V1OwnerReference,
} from '@kubernetes/client-node';

/** Environment for a runner's template: the hooks find their pod by this variable. */
export const MAKES_JOB_PODS = {
  name: 'ACTIONS_RUNNER_POD_NAME',
  valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
};

/** The objects, by their purpose. */
export interface JobObjects {
  readonly job: V1ObjectMeta;
  readonly step: V1ObjectMeta;
  readonly registry: V1ObjectMeta;
  readonly environment: V1ObjectMeta;
}

export interface JobObjectsPlace {
  readonly kubeConfig: KubeConfig;
  readonly namespace: string;
}

/**
 * Creates a job's pod with a Secret for its image, and a container step as a Job, as version 0.7 of
 * the hooks does, with a Secret for its environment.
 * @param runner - name of its pod
 */
export async function makeJobObjects(
  { kubeConfig, namespace }: JobObjectsPlace,
  runner: string,
  { image = 'busybox', scheduler = 'default-scheduler' } = {},
): Promise<JobObjects> {
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const labels = { 'runner-pod': runner };
  const named = (suffix: string): string =>
    `${runner.slice(0, 63 - suffix.length - 10)}${suffix}-${randomUUID().slice(0, 8)}`;
  const secret = async (type: string, data: Record<string, string>): Promise<V1ObjectMeta> =>
    (
      await core.createNamespacedSecret({
        namespace,
        body: {
          metadata: { name: named('-secret'), labels },
          immutable: true,
          type,
          stringData: data,
        },
      })
    ).metadata ?? {};
  const registry = await secret('kubernetes.io/dockerconfigjson', {
    '.dockerconfigjson': '{"auths":{}}',
  });
  const environment = await secret('Opaque', { CI: 'true' });
  const spec = {
    schedulerName: scheduler,
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
  };
  const container = { name: 'job', image, command: ['sleep', '1000'] };
  const job = await core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name: `${runner.slice(0, 54)}-workflow`, labels },
      spec: { ...spec, imagePullSecrets: [{ name: registry.name ?? '' }], containers: [container] },
    },
  });
  const step = await kubeConfig.makeApiClient(BatchV1Api).createNamespacedJob({
    namespace,
    body: {
      metadata: { name: named('-step'), labels },
      spec: {
        ttlSecondsAfterFinished: 300,
        backoffLimit: 0,
        template: {
          metadata: {},
          spec: {
            ...spec,
            containers: [
              { ...container, envFrom: [{ secretRef: { name: environment.name ?? '' } }] },
            ],
          },
        },
      },
    },
  });
  return { job: job.metadata ?? {}, step: step.metadata ?? {}, registry, environment };
}

/** Returns the current objects. Those that do not exist are left out. */
export async function readJobObjects(
  { kubeConfig, namespace }: JobObjectsPlace,
  { job, step, registry, environment }: JobObjects,
): Promise<Partial<JobObjects>> {
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const [pods, jobs, secrets] = await Promise.all([
    core.listNamespacedPod({ namespace }),
    kubeConfig.makeApiClient(BatchV1Api).listNamespacedJob({ namespace }),
    core.listNamespacedSecret({ namespace }),
  ]);
  const now = (
    { items }: { items: { metadata?: V1ObjectMeta }[] },
    { uid }: V1ObjectMeta,
  ): V1ObjectMeta | undefined => items.find(({ metadata }) => metadata?.uid === uid)?.metadata;
  const seen = {
    job: now(pods, job),
    step: now(jobs, step),
    registry: now(secrets, registry),
    environment: now(secrets, environment),
  };
  return Object.fromEntries(
    Object.entries(seen).filter(([, metadata]) => metadata !== undefined),
  ) as Partial<JobObjects>;
}

export type Owners = Partial<Record<keyof JobObjects, V1OwnerReference[] | undefined>>;

/** Returns the owners of the objects. */
export function ownersOf(objects: Partial<JobObjects>): Owners {
  return Object.fromEntries(
    Object.entries(objects).map(([what, { ownerReferences }]) => [what, ownerReferences]),
  );
}
