import { CoreV1Api, KubeConfig, type V1Container, type V1Pod } from '@kubernetes/client-node';
import { HANGS_MS, untilSeen } from './until.ts';

/** A namespace for one test on pods. */
export interface TestNamespace {
  readonly name: string;
  readonly core: CoreV1Api;
  readonly kubeConfig: KubeConfig;
  /** Creates a pod of one container named `runner`, `restartPolicy: Never`. */
  createPod(
    name: string,
    container: Partial<V1Container>,
    spec?: Partial<NonNullable<V1Pod['spec']>>,
    annotations?: Readonly<Record<string, string>>,
  ): Promise<V1Pod>;
  /**
   * Reads the pod until the condition is met.
   * @throws Error with its last status after `withinMs` (default 60 s)
   */
  waitForPod(name: string, wanted: (pod: V1Pod) => boolean, withinMs?: number): Promise<V1Pod>;
  /** Waits until the pod does not exist. */
  waitUntilGone(name: string, withinMs?: number): Promise<void>;
  log(name: string): Promise<string>;
  /** Removes the pod, if it exists. */
  remove(): Promise<void>;
}

let counter = 0;

/**
 * Creates a namespace in which pods can be created immediately: its default service account exists.
 */
export async function createTestNamespace(
  kubeconfig: string,
  prefix: string,
): Promise<TestNamespace> {
  const namespace = testNamespace(kubeconfig, `${prefix}-${process.pid}-${counter++}`);
  const { core, name } = namespace;
  await core.createNamespace({ body: { metadata: { name } } });
  await waitFor(
    () => core.readNamespacedServiceAccount({ namespace: name, name: 'default' }),
    (account) => account !== undefined,
    HANGS_MS,
    `the default service account of ${name}`,
  );
  return namespace;
}

/** Returns an existing namespace. */
export function testNamespace(kubeconfig: string, name: string): TestNamespace {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(kubeconfig);
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const read = (pod: string): Promise<V1Pod> =>
    core.readNamespacedPod({ namespace: name, name: pod });
  return {
    name,
    core,
    kubeConfig,
    createPod: (pod, container, spec, annotations = {}) =>
      core.createNamespacedPod({
        namespace: name,
        body: {
          metadata: { name: pod, annotations },
          spec: {
            restartPolicy: 'Never',
            ...spec,
            containers: [
              {
                name: 'runner',
                image: 'holdfast.test/busybox:1',
                imagePullPolicy: 'IfNotPresent',
                ...container,
              },
            ],
          },
        },
      }),
    waitForPod: async (pod, wanted, withinMs = HANGS_MS) =>
      (await waitFor(
        () => read(pod),
        (found) => found !== undefined && wanted(found),
        withinMs,
        `pod ${pod}`,
      )) as V1Pod,
    waitUntilGone: async (pod, withinMs = HANGS_MS) => {
      await waitFor(
        () => read(pod),
        (found) => found === undefined,
        withinMs,
        `the end of pod ${pod}`,
      );
    },
    log: (pod) => core.readNamespacedPodLog({ namespace: name, name: pod }),
    remove: async () => {
      await core
        .deleteNamespace({ name, body: { gracePeriodSeconds: 0 } })
        .catch((error: { code?: number }) => {
          if (error.code !== 404) throw error;
        });
    },
  };
}

/** Reads until the condition holds; a 404 is `undefined`. */
async function waitFor<T>(
  read: () => Promise<T>,
  wanted: (value: T | undefined) => boolean,
  withinMs: number,
  what: string,
): Promise<T | undefined> {
  const present = async (): Promise<T | undefined> =>
    await read().catch((error: { code?: number }) => {
      if (error.code === 404) return undefined;
      throw error;
    });
  return await untilSeen(what, present, wanted, withinMs);
}
