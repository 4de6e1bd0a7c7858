/** Runners as pods. */
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeConfig, V1Node, V1PersistentVolumeClaim, V1Pod, V1Secret, V1Status } from '@kubernetes/client-node';
import { RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { podName } from '../naming.ts';
import { ComputeError, type Compute, type DeletionOptions, type Logger, type PodListener, type Registration } from '../../ports.ts';
import { ApiServer, type ApiServerOptions } from './apiServer.ts';
import { CreatedPods } from './createdPods.ts';
import { apiFailure, toComputeError } from './errors.ts';
import { belongsTo, isLabelValue, ownSelector, STOP_REASON_ANNOTATION } from './metadata.ts';
import { nodeState } from './nodeState.ts';
import { PodCache } from './podCache.ts';
import { PodDeletions } from './podDeletions.ts';
import { listPods } from './podList.ts';
import { podFaults, podSpec, type PodDefaults } from './podSpec.ts';
import { viewOfPod } from './viewOfPod.ts';
import { registrationOf, registrationSecret } from './registrationSecret.ts';
import { claimOf, persistentVolumeClaim } from './volumeClaims.ts';
import type { PodRef, PodRequest, PodView, RunnerIdentity } from '../../../core/domain/pod.ts';

export interface KubernetesComputeOptions extends ApiServerOptions {
  readonly kubeConfig: KubeConfig;
  /** Where pods are made when the request names no namespace. Default: the context's, else `default`. */
  readonly namespace?: string;
  /** Requests may name other namespaces; needs a ClusterRole. @default false */
  readonly allNamespaces?: boolean;
  /** Value of the label that marks what belongs to this installation. */
  readonly installation: string;
  /** Laid under every request. */
  readonly pod?: PodDefaults;
  readonly logger: Logger;
  /** A watch that is silent for so long counts as dead, in ms. @default 30000 */
  readonly quietMs?: number;
  /** First delay after a lost watch, in ms; doubles up to 30 s. @default 500 */
  readonly minBackoffMs?: number;
}

/** The compute, and what its owner does with it at the end. */
export interface KubernetesCompute extends Compute {
  readonly kind: 'kubernetes';
  /** Closes the connections to the API server. */
  close(): Promise<void>;
}

/**
 * How long the kubelet is given to show a new annotation in the pod's downward API volume, in ms: it writes the volumes of a pod anew when
 * it hears of the change and has looked at its containers since the last time (every second), and never once the pod is terminating.
 * Seen on a node with ten processes waiting for each core: 2.2 s.
 */
export const ANNOUNCEMENT_MS = 3_000;
/** Lines of a log to look at for its last bytes. */
const TAIL_LINES = 2_000;

/** @throws Error when `installation` is no label value */
export function createKubernetesCompute(options: KubernetesComputeOptions): KubernetesCompute {
  const { installation, logger, kubeConfig } = options;
  if (!isLabelValue(installation)) throw new Error(`The installation's name "${installation}" is no label value: use letters, digits, "-", "_" and "."`);
  const home = namespaceOf(kubeConfig, options.namespace);
  const api = new ApiServer(kubeConfig, options);
  const labelSelector = ownSelector(installation);
  const allPods = options.allNamespaces ? '/api/v1/pods' : `/api/v1/namespaces/${home}/pods`;
  const created = new CreatedPods();
  let cache: PodCache | undefined;
  const deletions = new PodDeletions();

  function place(namespace: string | undefined): string {
    if (namespace === undefined || namespace === home || options.allNamespaces) return namespace ?? home;
    throw new ComputeError('invalid', `Namespace "${namespace}": this worker makes and watches runners in "${home}" only; leave it out, or let the worker use all namespaces`);
  }

  /** `undefined`: 404. */
  async function get<T>(resource: Resource, namespace: string, name: string): Promise<T | undefined> {
    try {
      return await api.call<T>({ verb: 'get', resource, path: pathOf(resource, namespace, name) });
    } catch (error) {
      if (apiFailure(error)?.status === 404) return undefined;
      throw toComputeError(error, `get ${resource} ${namespace}/${name}`);
    }
  }

  /**
   * Creates the object, or returns the one that an earlier try made. Between "it exists" and our look at it the old one may
   * have gone: then it is created after all.
   */
  async function createOrGet<T extends V1Pod | V1Secret | V1PersistentVolumeClaim>(resource: Resource, namespace: string, object: T, identity: RunnerIdentity): Promise<T> {
    const name = object.metadata?.name ?? '';
    for (let tries = 0; ; tries++) {
      try {
        // Strict: a misspelt field of a pod template is told, not dropped.
        return await api.call<T>({ verb: 'create', resource, path: pathOf(resource, namespace), query: { fieldValidation: 'Strict' }, body: object });
      } catch (error) {
        const failure = apiFailure(error);
        if (failure?.status !== 409 || failure.reason !== 'AlreadyExists' || tries === 2) throw toComputeError(error, `create ${resource} ${namespace}/${name}`);
      }
      const existing = await get<T>(resource, namespace, name);
      if (existing === undefined) continue;
      // What carries no name of an owner is meant to be shared: a claim that goes from runner to runner.
      if (belongsTo(existing.metadata?.annotations, identity) || object.metadata?.annotations === undefined) return existing;
      throw new ComputeError('invalid', `${resource} ${namespace}/${name} exists and belongs to something else: delete it, or start the runner under another workflow id`);
    }
  }

  /** Absent: fine. */
  async function remove(resource: Resource, namespace: string, name: string): Promise<void> {
    try {
      await api.call({ verb: 'delete', resource, path: pathOf(resource, namespace, name) });
    } catch (error) {
      if (apiFailure(error)?.status !== 404) throw toComputeError(error, `delete ${resource} ${namespace}/${name}`);
    }
  }

  /** Tells the supervisor why the pod will be stopped, where it can still read it. */
  async function announce({ name, uid, namespace }: PodRef, reason: string): Promise<void> {
    const body = { metadata: { uid, annotations: { [STOP_REASON_ANNOTATION]: reason } } };
    try {
      await api.call({ verb: 'patch', resource: 'pods', path: pathOf('pods', place(namespace), name), body });
    } catch (error) {
      const failure = apiFailure(error);
      // Gone already, or another UID, which the API server takes for the attempt to change it.
      if (failure?.status === 404 || (failure?.status === 422 && failure.message.includes('metadata.uid'))) return;
      throw toComputeError(error, `annotate pod ${name}`);
    }
    await delay(ANNOUNCEMENT_MS);
  }

  async function askForDeletion({ name, uid, namespace }: PodRef, { gracePeriodSeconds, reason, announce: announced }: DeletionOptions): Promise<'gone' | 'terminating'> {
    logger.info({ pod: name, uid, gracePeriodSeconds, reason }, 'deleting the pod');
    if (announced !== undefined) await announce({ name, uid, ...(namespace === undefined ? {} : { namespace }) }, announced);
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid }, ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }) };
    try {
      const answer = await api.call<V1Pod | V1Status>({ verb: 'delete', resource: 'pods', path: pathOf('pods', place(namespace), name), body });
      return isTerminating(answer) ? 'terminating' : 'gone';
    } catch (error) {
      const failure = apiFailure(error);
      if (failure?.status === 404 || (failure?.status === 409 && /uid/i.test(failure.message))) return 'gone';
      throw toComputeError(error, `delete pod ${name}`);
    }
  }

  function viewOf(pod: V1Pod): PodView {
    return viewOfPod(pod, new Date().toISOString(), cache?.get(pod.metadata?.name ?? ''));
  }

  return {
    kind: 'kubernetes',
    podName,

    faults: (request) => podFaults(request, options.pod ?? {}, installation),

    async readRegistrationSecret(identity, namespace) {
      const secret = await get<V1Secret>('secrets', place(namespace), podName(identity));
      return secret && belongsTo(secret.metadata?.annotations, identity) ? registrationOf(secret) : undefined;
    },

    async storeRegistrationSecret(identity, registration, namespace) {
      const secret = registrationSecret(identity, registration, installation);
      return registrationOf(await createOrGet('secrets', place(namespace), secret, identity));
    },

    async createPod(request: PodRequest, registration: Registration | undefined) {
      const secret = registration && { secretName: podName(request.identity), keys: Object.keys(registration.env) };
      const pod = podSpec(request, options.pod ?? {}, installation, secret);
      for (const wanted of request.volumeClaims ?? []) {
        const claim = persistentVolumeClaim(request.identity, wanted, installation);
        if (claim !== undefined) await createOrGet('persistentvolumeclaims', place(request.namespace), claim, { ...request.identity, attempt: 0 });
      }
      const made = await createOrGet('pods', place(request.namespace), pod, request.identity);
      created.add(made.metadata?.uid ?? '', made.metadata?.resourceVersion ?? '');
      return viewOf(made);
    },

    async observe({ name, uid, namespace }) {
      if (cache?.synced()) {
        const known = cache.get(name);
        if (known && (uid === undefined || known.uid === uid)) return known;
        const createdAt = uid === undefined ? undefined : created.resourceVersionOf(uid);
        // The cache has seen the time of its creation, and does not have it: it is gone.
        if (createdAt !== undefined && cache.isAtOrPast(createdAt)) return undefined;
      }
      const pod = await get<V1Pod>('pods', place(namespace), name);
      return pod && (uid === undefined || pod.metadata?.uid === uid) ? viewOf(pod) : undefined;
    },

    async deletePod(pod: PodRef, options = {}) {
      // Without the watch nothing would tell that it is over.
      const isPlain = options.gracePeriodSeconds === undefined && options.announce === undefined && cache?.synced() === true;
      return isPlain ? await deletions.once(pod.uid, async () => await askForDeletion(pod, options)) : await askForDeletion(pod, options);
    },

    async deleteRegistrationSecret(identity, namespace) {
      await remove('secrets', place(namespace), podName(identity));
    },

    async deleteClaims(identity, claims, namespace) {
      for (const claim of claims) {
        if (claim.claim === undefined) await remove('persistentvolumeclaims', place(namespace), claimOf(identity, claim));
      }
    },

    async nodeState(name) {
      try {
        return nodeState(await api.call<V1Node>({ verb: 'get', resource: 'nodes', path: `/api/v1/nodes/${encodeURIComponent(name)}` }));
      } catch (error) {
        if (apiFailure(error)?.status === 404) return 'gone';
        throw toComputeError(error, `get node ${name}`);
      }
    },

    async tailLog({ name, namespace }, maxBytes) {
      const path = `${pathOf('pods', place(namespace), name)}/log`;
      try {
        const text = await api.text({ verb: 'get', resource: 'pods/log', path, query: { container: RUNNER_CONTAINER, tailLines: TAIL_LINES } });
        const bytes = Buffer.from(text);
        if (bytes.length === 0) return undefined;
        return bytes.length <= maxBytes ? text : bytes.subarray(bytes.length - maxBytes).toString('utf8');
      } catch (error) {
        const status = apiFailure(error)?.status;
        // 400: the container has not started, or its log is gone with it.
        if (status === 404 || status === 400) return undefined;
        throw toComputeError(error, `read the log of pod ${name}`);
      }
    },

    async list() {
      const views: PodView[] = [];
      try {
        await listPods(api, { path: allPods, labelSelector, onPod: (pod) => views.push(viewOf(pod)) });
      } catch (error) {
        throw toComputeError(error, 'list pods');
      }
      return views;
    },

    async watch(listener: PodListener) {
      if (cache) throw new Error('The pods are watched already: one watch per process');
      const own = new PodCache(api, {
        path: allPods,
        labelSelector,
        listener: {
          changed(pod, previous) {
            if (pod.gone) deletions.over(pod.uid);
            listener.changed(pod, previous);
          },
          relisted: (pods) => listener.relisted(pods),
        },
        onError: (error, what) => logger.warn({ err: toComputeError(error, 'watch pods') }, what),
        ...(options.quietMs === undefined ? {} : { quietMs: options.quietMs }),
        ...(options.minBackoffMs === undefined ? {} : { minBackoffMs: options.minBackoffMs }),
      });
      cache = own;
      return {
        synced: () => own.synced(),
        async stop() {
          if (cache === own) cache = undefined;
          await own.stop();
        },
      };
    },

    close: () => api.close(),
  };
}

/** The namespace that a worker uses when its settings name none: the context's (in a cluster its own), else `default`. */
export function namespaceOf(kubeConfig: KubeConfig, configured: string | undefined): string {
  return configured ?? kubeConfig.getContextObject(kubeConfig.getCurrentContext())?.namespace ?? 'default';
}

type Resource = 'pods' | 'secrets' | 'persistentvolumeclaims';

function pathOf(resource: Resource, namespace: string, name?: string): string {
  const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`;
  return name === undefined ? collection : `${collection}/${encodeURIComponent(name)}`;
}

/**
 * A pod that goes at once (never scheduled, ended, or grace 0) is answered with the pod as it was last, its grace 0; a finalizer
 * keeps it nevertheless.
 */
function isTerminating(answer: V1Pod | V1Status): boolean {
  if (answer.kind !== 'Pod') return false;
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = (answer as V1Pod).metadata ?? {};
  return deletionTimestamp !== undefined && (deletionGracePeriodSeconds !== 0 || (finalizers?.length ?? 0) > 0);
}
