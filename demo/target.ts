/** Where the demo's runners run: local processes, or pods on a cluster. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import {
  POD_FILE,
  type PodOwner,
  type RunnerStarted,
} from '../activities/compute/process/podDirectory.ts';
import { GITHUB_RUNNER } from '../core/domain/runnerKinds/gitHub.ts';
import { createProcessCompute } from '../activities/compute/process/processCompute.ts';
import { readJson } from '../activities/compute/process/atomicFile.ts';
import { signalProcess } from '../activities/compute/process/processIdentity.ts';
import type { RunnerInput } from '../core/contract/index.ts';

export interface Target {
  /** Settings of the worker. */
  readonly workerEnv: Readonly<Record<string, string>>;
  /** Address that the simulator listens on, and the host name under which runners reach it. */
  readonly simulator: { readonly listen: string; readonly host: string };
  /** What every runner of the demo is started with. */
  readonly runnerInput: Partial<RunnerInput>;
  /** Makes the runner's pod disappear without a goodbye. */
  deletePod(podName: string): Promise<void>;
  /** What is left of runners: pods or processes, and Secrets. */
  remainingObjects(): Promise<string[]>;
  close(): Promise<void>;
}

/** The simulator's runner program: it uses nothing but Node. */
const RUNNER_PROGRAM = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts')
      ? '../tools/simulator/runner.ts'
      : '../tools/simulator/runner.js',
    import.meta.url,
  ),
);

/** Runners as local processes under a state folder of the demo's own. */
export function processTarget(stateDir: string): Target {
  const folder = join(stateDir, 'processes');
  const compute = createProcessCompute({ stateDir: folder });
  return {
    workerEnv: {
      HOLDFAST_COMPUTE: 'process',
      HOLDFAST_STATE_DIR: folder,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify([process.execPath, RUNNER_PROGRAM]),
    },
    simulator: { listen: '127.0.0.1', host: '127.0.0.1' },
    runnerInput: {},
    async deletePod(podName) {
      const pod = join(folder, 'pods', podName);
      const owner = await readJson<PodOwner>(join(pod, POD_FILE.owner));
      const started = await readJson<RunnerStarted>(join(pod, POD_FILE.started));
      if (owner?.wrapper === undefined || started === undefined)
        throw new Error(`${podName} has no process to kill`);
      await signalProcess(owner.wrapper, 'SIGKILL', { group: true });
      await signalProcess(started.process, 'SIGKILL', { group: true });
    },
    async remainingObjects() {
      const registrations = await readdir(join(folder, 'registrations')).catch(
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return []; // no runner was ever started
          throw error;
        },
      );
      return [
        ...(await compute.list()).map((pod) => `process ${pod.name}`),
        ...registrations.map((file) => `registration file ${file}`),
      ];
    },
    close: async () => undefined,
  };
}

/** Runners as pods, on the cluster of a kubeconfig. */
export async function kubernetesTarget(options: {
  kubeconfig: string;
  image: string;
  supervisorImage?: string;
  hostAddress: string;
  namespace: string;
}): Promise<Target> {
  const [{ createKubernetesCompute }, { loadKubeConfig }, { CoreV1Api }] = await Promise.all([
    import('../activities/compute/kubernetes/kubernetesCompute.ts'),
    import('../activities/compute/kubernetes/kubeConfig.ts'),
    import('@kubernetes/client-node'),
  ]);
  const installation = 'holdfast-demo';
  const kubeConfig = loadKubeConfig({ path: options.kubeconfig });
  const api = kubeConfig.makeApiClient(CoreV1Api);
  const compute = createKubernetesCompute({
    kubeConfig,
    namespace: options.namespace,
    installation,
    podDefaults: { image: options.image },
    logger: pino({ level: 'silent' }),
  });
  return {
    workerEnv: {
      HOLDFAST_COMPUTE: 'kubernetes',
      HOLDFAST_KUBECONFIG: options.kubeconfig,
      HOLDFAST_KUBERNETES_NAMESPACE: options.namespace,
      HOLDFAST_INSTALLATION: installation,
      HOLDFAST_RUNNER_IMAGE: options.image,
      ...(options.supervisorImage === undefined
        ? {}
        : { HOLDFAST_SUPERVISOR_IMAGE: options.supervisorImage }),
    },
    simulator: { listen: '0.0.0.0', host: options.hostAddress },
    runnerInput: { image: options.image, command: [...GITHUB_RUNNER.image.command] },
    async deletePod(podName) {
      await api.deleteNamespacedPod({
        name: podName,
        namespace: options.namespace,
        gracePeriodSeconds: 0,
      });
    },
    async remainingObjects() {
      const secrets = await api.listNamespacedSecret({
        namespace: options.namespace,
        labelSelector: `holdfast.dev/installation=${installation}`,
      });
      return [
        ...(await compute.list()).map((pod) => `pod ${pod.name}`),
        ...secrets.items.map((secret) => `secret ${secret.metadata?.name ?? ''}`),
      ];
    },
    close: async () => await compute.close(),
  };
}
