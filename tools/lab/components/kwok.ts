import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { createObject, kubernetesApi } from '../kubernetesApi.ts';
import { kubeconfigPath, kubernetesFolder } from '../kubernetesFiles.ts';
import { KWOK_STAGES } from '../kwokStages.ts';
import { isOk } from '../probe.ts';

/** 10 nodes with 1,100 pods each: enough for 10,000 runners and their replacements. */
const NODES = 10;
const PODS_PER_NODE = 1_100;
const nodeNames = Array.from({ length: NODES }, (_, index) => `kwok-${index}`);
const ANNOTATION = 'kwok.x-k8s.io/node';

const stagesPath = (lab: Lab): string => join(kubernetesFolder(lab), 'kwok-stages.yaml');

export const kwok: Component = {
  name: 'kwok',
  binaries: ['kwok'],
  ports: ['kwok'],
  after: ['kube-apiserver', 'kube-controller-manager'],
  async prepare(lab) {
    await writeFile(stagesPath(lab), KWOK_STAGES);
    for (const name of nodeNames) {
      const resources = {
        cpu: '2000',
        memory: '8Ti',
        'ephemeral-storage': '8Ti',
        pods: String(PODS_PER_NODE),
      };
      await createObject(lab, '/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name,
          annotations: { [ANNOTATION]: 'fake' },
          labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', type: 'kwok' },
        },
        status: { allocatable: resources, capacity: resources },
      });
    }
  },
  command(lab) {
    return {
      args: [
        '--kubeconfig', kubeconfigPath(lab),
        '--config', stagesPath(lab),
        '--manage-nodes-with-annotation-selector', `${ANNOTATION}=fake`,
        // Leases keep the nodes Ready: ten small updates every ten seconds.
        '--node-lease-duration-seconds', '40',
        '--server-address', `127.0.0.1:${port(lab, 'kwok')}`,
      ],
    }; // prettier-ignore
  },
  healthy: (lab) => isOk(`http://127.0.0.1:${port(lab, 'kwok')}/healthz`),
  ready: async (lab) =>
    (await kwok.healthy(lab)) &&
    (await Promise.all(nodeNames.map((name) => nodeIsReady(lab, name)))).every(Boolean),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'see that the API server runs (`lab status`)',
};

/** The node is Ready, and pods may be scheduled to it. */
export async function nodeIsReady(lab: Lab, name: string): Promise<boolean> {
  const answer = await kubernetesApi(lab, `/api/v1/nodes/${name}`);
  if (answer?.status !== 200) return false;
  const node = JSON.parse(answer.body) as {
    spec: { taints?: unknown[] };
    status: { conditions?: { type: string; status: string }[] };
  };
  return (
    (node.spec.taints ?? []).length === 0 &&
    (node.status.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True')
  );
}
