import {
  makeInformer,
  type CoreV1Api,
  type KubeConfig,
  type V1Pod,
  type V1Secret,
} from '@kubernetes/client-node';
import { WORKFLOW_ID_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';

/** All versions of the pods and Secrets of a namespace. */
export interface NamespaceRecorder {
  /** Returns the UIDs of all pods that a workflow ever had, oldest first. */
  podsOf(workflowId: string): string[];
  /**
   * Whether the deletion of each observed pod of the workflow was observed too, so that no event is
   * outstanding.
   */
  sawAllGo(workflowId: string): boolean;
  /** Every version of every pod, as JSON. */
  readonly podVersions: readonly string[];
  /** Returns the values of the keys with these names in all Secrets, decoded. */
  secretValues(keys: readonly string[]): string[];
  stop(): Promise<void>;
}

const RESTART_AFTER_MS = 200;

/** Starts recording; survives the loss of the watch, as after a restart of the API server. */
export async function recordNamespace(
  kubeConfig: KubeConfig,
  core: CoreV1Api,
  namespace: string,
): Promise<NamespaceRecorder> {
  const podVersions: string[] = [];
  const pods = new Map<string, string>();
  const gone = new Set<string>();
  const secrets = new Map<string, V1Secret>();
  let stopped = false;

  const onPod = (pod: V1Pod): void => {
    const uid = pod.metadata?.uid ?? '';
    if (!pods.has(uid)) pods.set(uid, pod.metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ?? '');
    podVersions.push(JSON.stringify(pod));
  };
  const podInformer = follow(
    makeInformer<V1Pod>(kubeConfig, `/api/v1/namespaces/${namespace}/pods`, () =>
      core.listNamespacedPod({ namespace }),
    ),
    onPod,
  );
  podInformer.on('delete', ({ metadata }) => void gone.add(metadata?.uid ?? ''));
  const informers = [
    podInformer,
    follow(
      makeInformer<V1Secret>(kubeConfig, `/api/v1/namespaces/${namespace}/secrets`, () =>
        core.listNamespacedSecret({ namespace }),
      ),
      (secret) => secrets.set(secret.metadata?.uid ?? '', secret),
    ),
  ];

  function follow<T extends V1Pod | V1Secret>(
    informer: ReturnType<typeof makeInformer<T>>,
    seen: (object: T) => void,
  ): typeof informer {
    for (const event of ['add', 'update', 'delete'] as const) informer.on(event, seen);
    informer.on('error', () => {
      if (!stopped) setTimeout(() => void start(informer), RESTART_AFTER_MS);
    });
    return informer;
  }

  /** Retries while the server is unreachable. */
  async function start(informer: { start(): Promise<void> }): Promise<void> {
    await informer.start().catch(() => {
      if (!stopped) setTimeout(() => void start(informer), RESTART_AFTER_MS);
    });
  }

  await Promise.all(informers.map(start));
  const podsOf = (workflowId: string): string[] =>
    [...pods].filter(([, owner]) => owner === workflowId).map(([uid]) => uid);
  return {
    podsOf,
    sawAllGo: (workflowId) => podsOf(workflowId).every((uid) => gone.has(uid)),
    podVersions,
    secretValues: (keys) =>
      [...secrets.values()].flatMap(({ data = {} }) =>
        keys.flatMap((key) =>
          data[key] === undefined ? [] : [Buffer.from(data[key], 'base64').toString('utf8')],
        ),
      ),
    async stop() {
      stopped = true;
      for (const informer of informers) await informer.stop();
    },
  };
}
