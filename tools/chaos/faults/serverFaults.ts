import { PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { until } from '../waitUntil.ts';
import { kill, start, status, type ComponentName } from '../../lab/lab.ts';
import { WORKER_USER } from '../apiServerProxy.ts';
import type { ChaosEnvironment } from '../world.ts';
import type { Fault } from './fault.ts';

const stopComponents =
  (names: readonly ComponentName[], signal: 'SIGKILL' | 'SIGTERM'): Fault =>
  async ({ lab: { stateDir } }) => {
    for (const name of names) await kill(stateDir, name, { signal });
    return {
      end: async () => {
        for (const name of names) await start(stateDir, name);
      },
    };
  };

const delayCreations =
  (which: keyof ChaosEnvironment['proxy']['creations']): Fault =>
  ({ proxy: { creations } }, { forMs }) => {
    creations[which] = forMs;
    return { target: `by ${forMs} ms`, end: () => void (creations[which] = 0) };
  };

export const serverFaults = {
  temporal_killed: stopComponents(['temporal'], 'SIGKILL'),
  temporal_terminated: stopComponents(['temporal'], 'SIGTERM'),
  api_server_killed: stopComponents(['kube-apiserver'], 'SIGKILL'),
  api_server_terminated: stopComponents(['kube-apiserver'], 'SIGTERM'),
  servers_killed: stopComponents(['temporal', 'kube-apiserver'], 'SIGKILL'),
  etcd_stopped: async ({ lab: { stateDir } }) => {
    const { pid } = (await status({ stateDir })).components.etcd ?? {};
    if (pid === undefined) return undefined;
    process.kill(pid, 'SIGSTOP');
    return { end: () => void process.kill(pid, 'SIGCONT') };
  },
  watch_cut: ({ proxy }) => {
    proxy.cutWatches();
    return {};
  },
  api_server_unreachable: ({ proxy }) => ({ end: proxy.rejectConnections() }),
  watch_silent: ({ proxy }) => ({ end: proxy.silenceWatches() }),
  connections_cut: ({ proxy }) => {
    proxy.cutAll();
    return {};
  },
  creation_answered_late: delayCreations('responseDelayMs'),
  creation_arrives_late: delayCreations('requestDelayMs'),
  deletion_denied: async (world) => ({ end: await denyPods(world, 'DELETE') }),
  pods_denied: async (world) => ({ end: await denyPods(world, 'CREATE') }),
  quota_used_up: async ({ objects, name: namespace }) => {
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'used-up', namespace },
      spec: { hard: { pods: '0' } },
    };
    await objects.create(quota);
    return { end: async () => void (await objects.delete(quota)) };
  },
  nodes_cordoned: async ({ core }) => {
    const { items } = await core.listNode();
    const cordon = async (unschedulable: boolean): Promise<void> => {
      for (const { metadata } of items)
        await core.patchNode(
          { name: metadata?.name ?? '', body: { spec: { unschedulable } } },
          setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
        );
    };
    await cordon(true);
    return { end: async () => await cordon(false) };
  },
} satisfies Record<string, Fault>;

/**
 * Denies that workers create or delete pods of the run's namespace, by an admission policy.
 * @returns a function that removes the policy
 */
async function denyPods(
  { objects, name: namespace }: ChaosEnvironment,
  operation: 'CREATE' | 'DELETE',
): Promise<() => Promise<void>> {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const matchConstraints = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    resourceRules: [
      { apiGroups: [''], apiVersions: ['v1'], operations: [operation], resources: ['pods'] },
    ],
  };
  // Nodes must still be able to delete the objects of terminated pods.
  const matchConditions = [
    { name: 'a-worker', expression: `request.userInfo.username == "${WORKER_USER}"` },
  ];
  const policy = {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: namespace },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints,
      matchConditions,
      validations: [{ expression: 'false', message: 'not on Sundays' }],
    },
  };
  const binding = {
    apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: namespace },
    spec: { policyName: namespace, validationActions: ['Deny'] },
  };
  await objects.create(policy);
  await objects.create(binding);
  return async () => {
    for (const object of [binding, policy]) {
      await until(`the ${object.kind} to be deleted`, async () => {
        const error: unknown = await objects.delete(object).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        return error === undefined || (error as { code?: number }).code === 404;
      });
    }
  };
}
