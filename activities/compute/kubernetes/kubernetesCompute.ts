/** Compute that runs runners as pods. It combines the modules of this directory. */
import type { KubeConfig, V1Node, V1Pod, V1Secret } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodRequest } from '../../../core/domain/pod.ts';
import { REGISTER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { podTemplateErrors } from '../../../core/input/podTemplate.ts';
import { podName } from '../naming.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { Compute } from '../../ports/compute.ts';
import type { Logger } from '../../ports/logger.ts';
import type { PodDeletion } from '../../../core/activities/index.ts';
import { ApiObjects } from './apiObjects.ts';
import { ApiServer, type ApiServerOptions } from './apiServer.ts';
import { deleteUnchanged } from './deleteUnchanged.ts';
import { PendingDeletions } from './pendingDeletions.ts';
import { requestDeletion } from './requestDeletion.ts';
import { clusterId } from './clusterId.ts';
import { isNotFound, toComputeError } from './errors.ts';
import { type JobPodCount, JobPodOwnership, makesJobPods } from './jobPodOwnership.ts';
import { PodReader } from './podReader.ts';
import { QuotaReader } from './resourceQuota.ts';
import { installationSelector, isLabelValue } from './metadata.ts';
import { nodeState } from './nodeState.ts';
import { createOwnedObjects } from './ownedObjects.ts';
import { isOfRunner } from './ownership.ts';
import { podLogStream } from './podLogStream.ts';
import { podLogTail } from './podLogTail.ts';
import { type PodDefaults, podErrors, podSpec } from './podSpec.ts';
import { DEFAULT_POD_POLICY, type PodPolicy } from './podPolicy/podPolicy.ts';
import {
  installationImages,
  installationStore,
  policyViolations,
  toPolicyInput,
} from './podPolicy/policyViolations.ts';
import {
  parseRegistrationSecret,
  registrationAnnotations,
  registrationSecret,
} from './registrationSecret.ts';
import { jobVolumeClaim } from './volumeClaims.ts';
import { RunnerClaims } from './runnerClaims.ts';

/** Options of {@link createKubernetesCompute}. */
export interface KubernetesComputeOptions extends ApiServerOptions {
  readonly kubeConfig: KubeConfig;
  /**
   * Namespace of pods whose request names none.
   * @default the namespace of the context, otherwise `default`
   */
  readonly namespace?: string;
  /**
   * Other namespaces that requests may name.
   * @default none
   */
  readonly otherNamespaces?: readonly string[];
  /**
   * Namespaces in which the hooks of runners create pods for their jobs, in addition to the others.
   * @default none
   */
  readonly jobPodNamespaces?: readonly string[];
  /** Name of this installation, the value of the label on all its objects. */
  readonly installation: string;
  /** Defaults for fields that a request leaves out. */
  readonly podDefaults?: PodDefaults;
  /**
   * Policy that every requested pod must satisfy.
   * @default the default values of the policy file
   */
  readonly policy?: PodPolicy;
  readonly logger: Logger;
  /**
   * Time without events after which a watch is reopened (ms).
   * @default 30000
   */
  readonly watchTimeoutMs?: number;
  /**
   * Called with the number of pods that jobs created themselves, after the first runner that
   * creates such pods.
   */
  readonly onJobPodCount?: (count: JobPodCount) => void;
  /**
   * Time to wait before the first reconnect of the watch (ms). It doubles after each failure.
   * @default 500
   */
  readonly minBackoffMs?: number;
}

/** The Kubernetes compute. Close it at the end. */
export interface KubernetesCompute extends Compute {
  readonly kind: 'kubernetes';
  /** Closes the connections to the API server. */
  close(): Promise<void>;
}

/**
 * Creates the compute that runs runners as pods.
 * @throws Error if `installation` is not a valid label value
 */
export function createKubernetesCompute(options: KubernetesComputeOptions): KubernetesCompute {
  const parts = createParts(options);
  const { api, objects, pods, quotas, installation, home, others, defaults } = parts;
  let cluster: string | undefined;
  return {
    kind: 'kubernetes',
    ...stepStorage(defaults),
    isReachable: () => api.isReachable(),
    podName,

    async location() {
      cluster ??= await clusterId(api);
      return {
        compute: 'kubernetes',
        cluster,
        installation,
        namespace: home,
        ...(others.length > 0 ? { otherNamespaces: others } : {}),
      };
    },

    ...registrationSecrets(parts),
    ...podCalls(parts),
    ...claimCalls(parts),
    ...clusterCalls(parts),
    ...logCalls(parts),
    list: async (how) => await pods.list(how),

    async exhaustedQuota({ namespace, like }) {
      const pod = like && (await objects.get<V1Pod>('pods', like.namespace, like.name));
      return await quotas.exhausted(namespace ?? home, pod);
    },

    ownedObjects: createOwnedObjects(api, objects, installation),
    watch: async (listener) => watchPods(parts, options, listener),
    close: () => api.close(),
  };
}

/** Parts that the calls of the compute have in common. */
interface ComputeParts {
  readonly installation: string;
  readonly logger: Logger;
  readonly api: ApiServer;
  readonly objects: ApiObjects;
  readonly pods: PodReader;
  readonly claims: RunnerClaims;
  readonly quotas: QuotaReader;
  readonly pendingDeletions: PendingDeletions;
  /** Namespace of pods whose request names none. */
  readonly home: string;
  readonly others: readonly string[];
  readonly defaults: PodDefaults;
  /** Returns the reasons for which a pod is not allowed. */
  readonly judge: (pod: V1Pod, request: PodRequest) => string[];
}

/** @throws Error if `installation` is not a valid label value */
function createParts(options: KubernetesComputeOptions): ComputeParts {
  const { installation, logger, kubeConfig, policy = DEFAULT_POD_POLICY } = options;
  const { otherNamespaces = [], jobPodNamespaces: jobPods = [] } = options;
  const defaults = { ...options.podDefaults, userNamespaces: policy.userNamespaces };
  if (!isLabelValue(installation))
    throw new Error(
      `installation: invalid label value "${installation}"; use letters, digits, "-", "_" and "."`,
    );
  const api = new ApiServer(kubeConfig, options);
  const home = namespaceOf(kubeConfig, options.namespace);
  const others = [...new Set([...otherNamespaces, ...jobPods])].filter((each) => each !== home);
  const objects = new ApiObjects(api, { default: home, others, jobPods }, installation);
  return {
    installation,
    logger,
    api,
    objects,
    pods: new PodReader(api, objects, {
      installation,
      labelSelector: installationSelector(installation),
      logger,
      watchTimeoutMs: options.watchTimeoutMs,
      minBackoffMs: options.minBackoffMs,
    }),
    claims: new RunnerClaims(objects, installation, policy.claims),
    quotas: new QuotaReader(api),
    pendingDeletions: new PendingDeletions(),
    home,
    others,
    defaults,
    judge: judgeOf(objects, policy, { home, others, defaults }),
  };
}

/**
 * Returns the check of pods. It checks the template too, because Holdfast recognizes its containers
 * by their reserved names.
 */
function judgeOf(
  objects: ApiObjects,
  policy: PodPolicy,
  { home, others, defaults }: Pick<ComputeParts, 'home' | 'others' | 'defaults'>,
): ComputeParts['judge'] {
  const own = {
    images: installationImages(defaults),
    namespaces: [home, ...others],
    ...installationStore(defaults.store?.place),
  };
  return (pod, request) => [
    ...podTemplateErrors(request.template ?? {}).map(
      ({ field, message }) => `pod.${field} ${message}`,
    ),
    ...jobPodErrors(pod, objects.hasJobPods(request.namespace)),
    ...policyViolations(toPolicyInput(pod, request, home, defaults.template), policy, own),
  ];
}

/** Calls about the Secrets with registrations. */
function registrationSecrets({
  objects,
  installation,
}: ComputeParts): Pick<
  Compute,
  'readRegistrationSecret' | 'storeRegistrationSecret' | 'deleteRegistrationSecret'
> {
  return {
    async readRegistrationSecret(identity, namespace) {
      const secret = await objects.get<V1Secret>('secrets', namespace, podName(identity));
      return secret && isOfRunner(secret.metadata ?? {}, installation, identity)
        ? parseRegistrationSecret(secret)
        : undefined;
    },

    async storeRegistrationSecret(identity, registration, namespace) {
      const secret = registrationSecret(identity, registration, installation);
      return parseRegistrationSecret(
        await objects.createOrGet('secrets', namespace, secret, identity),
      );
    },

    async deleteRegistrationSecret(identity, namespace) {
      await objects.deleteOwn('secrets', namespace, podName(identity), identity);
    },
  };
}

/** Calls about one pod. */
function podCalls(
  parts: ComputeParts,
): Pick<Compute, 'validate' | 'createPod' | 'getPod' | 'getCachedPod' | 'deletePod'> {
  const { objects, pods, claims, defaults, installation, judge } = parts;
  return {
    validate: (request, at) => [
      ...objects.namespaceErrors(request.namespace),
      ...podErrors(request, defaults, installation, judge, at),
    ],

    async createPod(request, registration) {
      const { identity, namespace, volumeClaims = [], storage } = request;
      const secret = registration && {
        secretName: podName(identity),
        keys: Object.keys(registration.env),
        annotations: registrationAnnotations(registration),
      };
      const pod = podSpec(request, defaults, installation, secret);
      // Checked again here, because anyone who can write to the Temporal namespace can bypass the
      // admission.
      const [fault] = judge(pod, request);
      if (fault !== undefined) throw new ComputeError('invalid', fault);
      for (const wanted of volumeClaims) await claims.create(identity, wanted, namespace);
      if (storage?.job !== undefined && defaults.jobClaim !== undefined)
        await claims.create(storage.job, jobVolumeClaim(defaults.jobClaim), namespace);
      return pods.created(await objects.createOrGet('pods', namespace, pod, identity));
    },

    getPod: async (pod) => await pods.observe(pod),
    getCachedPod: (pod) => pods.lastSeen(pod),
    deletePod: async (pod, how) => await deletePod(parts, pod, how),
  };
}

async function deletePod(
  { api, objects, pods, pendingDeletions, logger }: ComputeParts,
  ...[pod, how = {}]: Parameters<Compute['deletePod']>
): ReturnType<Compute['deletePod']> {
  const { name, uid, namespace } = pod;
  const { gracePeriodSeconds, stopReason, reason, unlessStarted, unlessBusy } = how;
  const ask = async (resourceVersion?: string): Promise<PodDeletion> => {
    if (resourceVersion === undefined && !(await pods.isOwn(pod))) return 'deleted';
    logger.info({ pod: name, uid, gracePeriodSeconds, reason }, 'deleting the pod');
    return await requestDeletion(
      api,
      objects.pathOf('pods', namespace, name),
      pod,
      how,
      resourceVersion,
    );
  };
  if (unlessStarted === true || unlessBusy === true)
    return await deleteUnchanged(async () => await pods.read(pod), ask, how);
  // Only with a watch, which reports the end of the deletion.
  const isPlain = gracePeriodSeconds === undefined && stopReason === undefined && pods.watched;
  return isPlain ? await pendingDeletions.once(uid, ask) : await ask();
}

/** Calls about the claims of runners. */
function claimCalls({
  claims,
}: ComputeParts): Pick<Compute, 'deleteClaims' | 'fenceClaims' | 'claimWriters' | 'releaseClaims'> {
  return {
    deleteClaims: async (...args) => await claims.delete(...args),
    fenceClaims: async (...args) => await claims.fence(...args),
    claimWriters: async (...args) => await claims.writers(...args),
    releaseClaims: async (...args) => await claims.release(...args),
  };
}

/** Calls about nodes. */
function clusterCalls({ api }: ComputeParts): Pick<Compute, 'nodeState'> {
  return {
    async nodeState(name) {
      try {
        return nodeState(
          await api.call<V1Node>({
            verb: 'get',
            resource: 'nodes',
            path: `/api/v1/nodes/${encodeURIComponent(name)}`,
          }),
        );
      } catch (error) {
        if (isNotFound(error, name)) return 'deleted';
        throw toComputeError(error, `get node ${name}`);
      }
    },
  };
}

/** Calls about the output of runners. */
function logCalls({ api, objects, pods }: ComputeParts): Pick<Compute, 'tailLog' | 'streamLog'> {
  return {
    tailLog: async (pod, maxBytes) =>
      (await pods.isOwn(pod)) ? await podLogTail(api, objects, pod, maxBytes) : undefined,

    streamLog: async (pod, how) =>
      (await pods.isOwn(pod)) ? await podLogStream(api, objects, pod, how) : undefined,
  };
}

function watchPods(
  { api, objects, pods, pendingDeletions, installation, logger }: ComputeParts,
  { watchTimeoutMs, onJobPodCount }: KubernetesComputeOptions,
  listener: Parameters<Compute['watch']>[0],
): Awaited<ReturnType<Compute['watch']>> {
  const jobPods = new JobPodOwnership(api, objects, {
    installation,
    logger,
    watchTimeoutMs,
    ...omitUndefined({ onCount: onJobPodCount }),
  });
  const changed: typeof listener.changed = (pod, previous) => {
    if (pod.deleted) pendingDeletions.over(pod.uid);
    listener.changed(pod, previous);
  };
  const watch = pods.watch({ changed, relisted: (all) => listener.relisted(all) }, (pod) =>
    jobPods.addRunner(pod),
  );
  return {
    synced: () => watch.synced(),
    stop: async () => void (await Promise.all([watch.stop(), jobPods.stop()])),
  };
}

function stepStorage({ store, jobClaim }: PodDefaults): Pick<Compute, 'stepStorage'> {
  if (store !== undefined) return { stepStorage: 'store' };
  return jobClaim === undefined ? {} : { stepStorage: 'claim' };
}

/**
 * Returns errors of a pod about the pods that jobs may create.
 * @param areHere - whether the hooks of runners may create pods in the pod's namespace
 */
function jobPodErrors({ spec }: V1Pod, areHere: boolean): string[] {
  if (!areHere)
    return makesJobPods(spec)
      ? [
          'namespace: must be one of HOLDFAST_JOB_POD_NAMESPACES for a runner whose hooks create pods for its jobs; name one, or have it added there',
        ]
      : [];
  return (spec?.initContainers ?? []).some(({ name }) => name === REGISTER_CONTAINER)
    ? [
        'ephemeral: must be true in a namespace whose jobs may read its Secrets (HOLDFAST_JOB_POD_NAMESPACES), because the registration of a static runner is valid for its whole scope; set it to true, or name another namespace',
      ]
    : [];
}

/**
 * Returns the namespace of a worker. If its settings have none, it is the namespace of the context
 * (in a cluster: of the worker's own pod), otherwise `default`.
 */
export function namespaceOf(kubeConfig: KubeConfig, configured: string | undefined): string {
  return (
    configured ??
    kubeConfig.getContextObject(kubeConfig.getCurrentContext())?.namespace ??
    'default'
  );
}
