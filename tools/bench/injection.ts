/** Measures the cost of the injected supervisor for pods on a real kubelet. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreV1Api, type V1Container, type V1PodSpec } from '@kubernetes/client-node';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { BUSYBOX_IMAGE, SUPERVISOR_IMAGE } from '../lab/images/definitions.ts';
import { containerdSocket } from '../lab/nodeFiles.ts';
import { resolveBinary } from '../lab/resolve.ts';
import { readRecord } from '../lab/store.ts';
import type { Measured } from './benchmark.ts';
import { createNamespace } from './namespace.ts';
import { withNode } from './node.ts';
import { TaskTimes } from './processes/taskTimes.ts';
import { percentile, roundTo } from './statistics.ts';
import type { WorldOptions } from './world.ts';

const RUNNER = 'runner';
const PROGRAM = ['/bin/sh', '-c', 'echo up'];
const POD_WITHIN_MS = 60_000;
/** Interval of the kubelet's checks (ms). Pods are created at random times between checks. */
const KUBELET_PERIOD_MS = 1_000;

/** Durations of one pod (ms). */
interface PodTimes {
  /** From the start of the init container to its end. */
  readonly init?: number;
  /** From the end of the init container to the start of the runner's container. */
  readonly noticed?: number;
  /** Container started → the program's first output. */
  readonly program: number;
  /** Pod created → the program's first output. */
  readonly pod: number;
}

/**
 * Measures pods with the supervisor and without it, in turn.
 * @param pods - number of pods of each kind
 */
export async function measureInjection(pods: number, options: WorldOptions): Promise<Measured> {
  return await withNode(options, async ({ stateDir, kubeconfig }) => {
    const record = await readRecord(stateDir);
    if (record === undefined) throw new Error(`${stateDir}: contains no lab`);
    const tasks = new TaskTimes(await resolveBinary('ctr'), containerdSocket({ record }));
    const core = loadKubeConfig({ path: kubeconfig }).makeApiClient(CoreV1Api);
    const namespace = `bench-${randomUUID().slice(0, 8)}`;
    try {
      await createNamespace(core, namespace);
      const injected: PodTimes[] = [];
      const plain: PodTimes[] = [];
      options.progress(`${pods} pods with the supervisor injected, ${pods} without it`);
      // Read the files from the disk before the measurement.
      await runPod(core, tasks, namespace, 'first', injectedSpec());
      for (let number = 1; number <= pods; number++) {
        await delay(Math.random() * KUBELET_PERIOD_MS);
        injected.push(await runPod(core, tasks, namespace, `injected-${number}`, injectedSpec()));
        await delay(Math.random() * KUBELET_PERIOD_MS);
        plain.push(await runPod(core, tasks, namespace, `plain-${number}`, plainSpec(PROGRAM)));
      }
      const of = (times: readonly PodTimes[], key: keyof PodTimes, share: number): number =>
        roundTo(
          percentile(
            times.flatMap((each) => each[key] ?? []),
            share,
          ),
        );
      return {
        figures: {
          'injection.pods': pods,
          'injection.initP50Ms': of(injected, 'init', 0.5),
          'injection.initP95Ms': of(injected, 'init', 0.95),
          'injection.noticedP50Ms': of(injected, 'noticed', 0.5),
          'injection.programP50Ms': of(injected, 'program', 0.5),
          'injection.podP50Ms': of(injected, 'pod', 0.5),
          'injection.plainPodP50Ms': of(plain, 'pod', 0.5),
        },
        details: { injected, plain },
      };
    } finally {
      await tasks.stop();
      await core.deleteNamespace({ name: namespace, body: { gracePeriodSeconds: 0 } });
    }
  });
}

/**
 * Returns the spec of a pod without the supervisor.
 * @param more - additional fields of the container
 */
function plainSpec(command: string[], more: Partial<V1Container> = {}): V1PodSpec {
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    containers: [
      { name: RUNNER, image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent', command, ...more },
    ],
  };
}

/** Returns the spec that the worker creates for an injected supervisor, with the same limits. */
function injectedSpec(): V1PodSpec {
  const volumeMounts = [{ name: 'supervisor', mountPath: '/holdfast' }];
  const supervisor = [
    '/holdfast/tini',
    '-s',
    '--',
    '/holdfast/ld.so',
    '--library-path',
    '/holdfast/lib',
    '/holdfast/node',
    '/holdfast/supervisor.mjs',
    '--',
  ];
  const copier: V1Container = {
    name: 'supervisor',
    image: SUPERVISOR_IMAGE,
    imagePullPolicy: 'IfNotPresent',
    command: ['cp', '-R', '/opt/holdfast/.', '/holdfast/'],
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    volumeMounts,
  };
  const spec = plainSpec([...supervisor, ...PROGRAM], {
    volumeMounts,
    env: [{ name: 'HOLDFAST_PROBE_PORT', value: '8078' }],
  });
  return Object.assign(spec, {
    volumes: [{ name: 'supervisor', emptyDir: {} }],
    initContainers: [copier],
  });
}

async function runPod(
  core: CoreV1Api,
  tasks: TaskTimes,
  namespace: string,
  name: string,
  spec: V1PodSpec,
): Promise<PodTimes> {
  const createdAt = Date.now();
  await core.createNamespacedPod({ namespace, body: { metadata: { name }, spec } });
  const { status } = await untilEnded(core, namespace, name);
  const [id] = status?.containerStatuses?.map(({ containerID }) => containerID) ?? [];
  const [initId] = status?.initContainerStatuses?.map(({ containerID }) => containerID) ?? [];
  if (id === undefined) throw new Error(`pod ${name} had no container`);
  const log = await core.readNamespacedPodLog({
    namespace,
    name,
    container: RUNNER,
    timestamps: true,
  });
  const [, upAt] = /^(\S+) up$/m.exec(log) ?? [];
  if (upAt === undefined) throw new Error(`pod ${name} did not run its program: ${log}`);
  const { startedAt } = await tasks.of(id);
  const init = initId === undefined ? undefined : await tasks.of(initId);
  return {
    ...(init && { init: init.endedAt - init.startedAt, noticed: startedAt - init.endedAt }),
    program: Date.parse(upAt) - startedAt,
    pod: Date.parse(upAt) - createdAt,
  };
}

async function untilEnded(
  core: CoreV1Api,
  namespace: string,
  name: string,
): Promise<Awaited<ReturnType<CoreV1Api['readNamespacedPod']>>> {
  for (const deadline = performance.now() + POD_WITHIN_MS; ; await delay(100)) {
    const pod = await core.readNamespacedPod({ namespace, name });
    if (pod.status?.phase === 'Succeeded') return pod;
    if (pod.status?.phase === 'Failed' || performance.now() > deadline)
      throw new Error(`pod ${name}: ${JSON.stringify(pod.status)}`);
  }
}
