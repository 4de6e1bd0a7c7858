/** Records the owner of every object in some namespaces, and the requests about it. */
import {
  KubernetesObjectApi,
  makeInformer,
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  type V1ObjectMeta,
} from '@kubernetes/client-node';
import { WORKFLOW_ID_ANNOTATION } from '../../../activities/compute/kubernetes/metadata.ts';
import { MANAGED_BY_LABEL } from '../../../core/domain/podTemplate.ts';
import type { ApiProxy } from '../apiProxy.ts';

const LEGACY = 'actions.summerwind.dev/v1alpha1';
const SCALE_SETS = 'actions.github.com/v1alpha1';
/** Recorded kinds, with the plural in their paths. */
const KINDS = [
  ['v1', 'Pod', 'pods'], ['v1', 'Secret', 'secrets'], ['v1', 'ServiceAccount', 'serviceaccounts'], ['v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'], ['v1', 'ConfigMap', 'configmaps'],
  ['apps/v1', 'StatefulSet', 'statefulsets'], ['rbac.authorization.k8s.io/v1', 'Role', 'roles'], ['rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'],
  [LEGACY, 'RunnerDeployment', 'runnerdeployments'], [LEGACY, 'RunnerReplicaSet', 'runnerreplicasets'], [LEGACY, 'RunnerSet', 'runnersets'], [LEGACY, 'Runner', 'runners'], [LEGACY, 'HorizontalRunnerAutoscaler', 'horizontalrunnerautoscalers'],
  [SCALE_SETS, 'AutoscalingRunnerSet', 'autoscalingrunnersets'], [SCALE_SETS, 'AutoscalingListener', 'autoscalinglisteners'], [SCALE_SETS, 'EphemeralRunnerSet', 'ephemeralrunnersets'], [SCALE_SETS, 'EphemeralRunner', 'ephemeralrunners'],
] as const; // prettier-ignore

/** One object, in all its versions. */
export interface LedgerEntry {
  /** `pods NAMESPACE/NAME`. */
  readonly key: string;
  readonly uid: string;
  readonly holdfasts: boolean;
  /** Field managers that the API server has recorded. */
  readonly writers: Set<string>;
  readonly finalizers: Set<string>;
  readonly metadataKeys: Set<string>;
  gone: boolean;
}

/** The object of a write request. */
export interface NamedWrite {
  readonly method: string;
  readonly path: string;
  /** The {@link LedgerEntry.key}; absent for a creation. */
  readonly key?: string;
}

export class ObjectLedger {
  readonly entries = new Map<string, LedgerEntry>();
  readonly #informers: { stop(): Promise<void> }[] = [];
  #stopped = false;

  static async open(kubeConfig: KubeConfig, namespaces: readonly string[]): Promise<ObjectLedger> {
    const ledger = new ObjectLedger();
    const api = kubeConfig.makeApiClient(KubernetesObjectApi);
    for (const [apiVersion, kind, resource] of KINDS) {
      for (const namespace of namespaces) {
        const path = `/${apiVersion === 'v1' ? 'api' : 'apis'}/${apiVersion}/namespaces/${namespace}/${resource}`;
        const informer = makeInformer<KubernetesObject>(
          kubeConfig,
          path,
          async () =>
            (await api.list(apiVersion, kind, namespace)) as KubernetesListObject<KubernetesObject>,
        );
        for (const event of ['add', 'update'] as const)
          informer.on(event, ({ metadata }) => ledger.#note(resource, metadata ?? {}, false));
        informer.on('delete', ({ metadata }) => ledger.#note(resource, metadata ?? {}, true));
        informer.on('error', () => (ledger.#stopped ? undefined : void informer.start()));
        ledger.#informers.push(informer);
        await informer.start();
      }
    }
    return ledger;
  }

  /** Returns the objects of Holdfast, or those of all others. */
  all(holdfasts: boolean): LedgerEntry[] {
    return [...this.entries.values()].filter((entry) => entry.holdfasts === holdfasts);
  }

  /** Returns the existing objects. */
  present(holdfasts: boolean): string[] {
    return this.all(holdfasts)
      .filter(({ gone }) => !gone)
      .map(({ key, uid }) => `${key} ${uid}`)
      .toSorted();
  }

  /** Whether an object with this name ever belonged to Holdfast. */
  isHoldfasts(key: string): boolean {
    return this.all(true).some((entry) => entry.key === key);
  }

  async close(): Promise<void> {
    this.#stopped = true;
    for (const informer of this.#informers) await informer.stop();
  }

  #note(resource: string, metadata: V1ObjectMeta, gone: boolean): void {
    const {
      uid = '',
      name,
      namespace,
      labels = {},
      annotations = {},
      finalizers = [],
      managedFields = [],
    } = metadata;
    const holdfasts =
      labels[MANAGED_BY_LABEL] === 'holdfast' && annotations[WORKFLOW_ID_ANNOTATION] !== undefined;
    const entry = this.entries.get(uid) ?? {
      key: `${resource} ${namespace}/${name}`,
      uid,
      holdfasts,
      writers: new Set(),
      finalizers: new Set(),
      metadataKeys: new Set(),
      gone,
    };
    for (const { manager } of managedFields) entry.writers.add(manager ?? '');
    for (const finalizer of finalizers) entry.finalizers.add(finalizer);
    for (const key of [...Object.keys(labels), ...Object.keys(annotations)])
      entry.metadataKeys.add(key);
    entry.gone = gone;
    this.entries.set(uid, entry);
  }
}

/** Returns all writes that went through the proxy. */
export function writesOf({ seen }: ApiProxy): NamedWrite[] {
  return seen
    .filter(({ method }) => method !== 'GET')
    .map(({ method, url: { pathname: path } }) => {
      const [, namespace, resource, name] =
        /\/namespaces\/([^/]+)\/([^/]+)\/([^/]+)/.exec(path) ?? [];
      return {
        method,
        path,
        ...(name !== undefined && { key: `${resource} ${namespace}/${name}` }),
      };
    });
}
