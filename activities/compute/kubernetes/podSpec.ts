/** Builds the pod for a request. Pure. */
import type { V1Container, V1EnvVar, V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import {
  isImageOfOtherKind,
  RUNNER_KINDS,
  TOKEN_VARIABLES,
} from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { formatDuration } from '../../../core/domain/duration.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { withoutNulls } from '../../../core/domain/withoutNulls.ts';
import { NOT_A_POD_SPEC } from './notAPodSpec.ts';
import { claimName, podName } from '../naming.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { RegistrationOrigin } from '../../ports/compute.ts';
import {
  JOB_TIMEOUT_CAP_ANNOTATION,
  NOTIFY_ANNOTATION,
  NOTIFY_BUSY,
  identityAnnotations,
  installationLabels,
  workflowLabel,
} from './metadata.ts';
import { mergeTemplates } from './mergeTemplates.ts';
import { networkPodParts } from './network.ts';
import { containerSecurityContext, podSecurityContext } from './podSecurity.ts';
import { withRegistration, type RegistrationPodParts } from './registrationContainer.ts';
import { registrationAnnotations } from './registrationSecret.ts';
import {
  withJobClaim,
  withStepStorage,
  withUnstoredArtifacts,
  type StepStoragePodParts,
  type ArtifactStoreConfig,
} from './stepStorage.ts';
import {
  attemptEnvironment,
  withSupervisor,
  resolveSupervisorMode,
  type SupervisorPodParts,
  type SupervisorSettings,
} from './supervisorInjection.ts';
import { claimVolumes, withClaimMounts, type JobClaimConfig } from './volumeClaims.ts';
import { JOB_CLAIM, type PodRequest, type PodTemplate } from '../../../core/domain/pod.ts';

/** Defaults from the worker's settings, which every request overrides. */
export interface PodDefaults {
  /** Image of the runner container if the request has none. */
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  /** UID of the default image, if it is not root. The pod then runs as this user only. */
  readonly user?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly template?: PodTemplate;
  /**
   * Supervisor to inject. Without it, runners run unsupervised, unless their image contains the
   * supervisor.
   */
  readonly supervisor?: SupervisorSettings;
  /** Artifact store. Without it, the artifacts of steps are not kept. */
  readonly store?: ArtifactStoreConfig;
  /** Claim of each job, if there is no artifact store. @default none */
  readonly jobClaim?: JobClaimConfig;
  /**
   * Whether pods get a user namespace of their own, if they share no namespace of the node.
   * @default false
   */
  readonly userNamespaces?: boolean;
}

/** Secret of a runner and the environment variables in it. */
export interface SecretEnv {
  readonly secretName: string;
  readonly keys: readonly string[];
  /**
   * Annotations of the pod about the registration, which may exist longer than its Secret.
   * @default none
   */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Builds the pod from the worker's defaults, the request's template, the request's own fields, and
 * the parts that Holdfast injects. Later ones override earlier ones. Fields that a request must not
 * set were rejected when the runner was admitted (core/input/).
 * @throws ComputeError `invalid` if there is no image, the supervisor cannot be injected, or the
 * template does not match Kubernetes' PodSpec
 */
export function podSpec(
  request: PodRequest,
  ofWorker: PodDefaults,
  installation: string,
  secret: SecretEnv | undefined,
): V1Pod {
  return withTemplateErrors(() => buildPod(request, ofWorker, installation, secret));
}

/**
 * Runs a function on a template, of which anyone may have written the parts that Holdfast does not
 * validate.
 * @throws ComputeError `invalid` instead of a TypeError
 */
function withTemplateErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof TypeError ? new ComputeError('invalid', NOT_A_POD_SPEC) : error;
  }
}

function buildPod(
  request: PodRequest,
  ofWorker: PodDefaults,
  installation: string,
  secret: SecretEnv | undefined,
): V1Pod {
  const defaults = defaultsOfKind(request, ofWorker);
  // Otherwise a request could remove fields of the worker's template.
  const template = mergeTemplates(
    withoutNulls(defaults.template ?? {}),
    withoutNulls(request.template ?? {}),
  ) as PodTemplate;
  const spec = (template.spec ?? {}) as Partial<V1PodSpec>;
  const unregistered = runnerContainer(spec, request, defaults);
  const registration = withRegistration(unregistered, spec, defaults, fromSecret(secret));
  const supervised = supervise(registration.runner, request, defaults, spec);
  const kept = withStorage(supervised, request, defaults, spec);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(request.identity),
      labels: installationLabels(installation, {
        ...template.metadata?.labels,
        ...request.labels,
        ...workflowLabel(request.identity),
      }),
      annotations: {
        ...template.metadata?.annotations,
        ...requestAnnotations(request, secret),
        ...supervised.annotations,
        ...kept.annotations,
      },
    },
    spec: {
      // A CI job is untrusted code, so it gets a token of the cluster only if the template requests
      // it.
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(defaults.userNamespaces === true && !sharesHost(spec) ? { hostUsers: false } : {}),
      ...omitUndefined({ ...spec, initContainers: undefined }),
      securityContext: podSecurityContext(spec.securityContext, kept.securityContext),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: request.terminationGracePeriodSeconds,
      ...containersAndVolumes(request, spec, { registration, supervised, kept }),
    },
  };
}

/** Runner container with or without supervisor, and the parts of the pod that it needs. */
type SupervisedParts = Omit<SupervisorPodParts, 'port'> & { readonly port?: number };

/**
 * Puts the runner container under the supervisor, if the request and the worker have one.
 * @throws ComputeError `invalid` if the supervisor cannot be injected
 */
function supervise(
  runner: Partial<V1Container>,
  { identity, supervision }: PodRequest,
  { supervisor }: PodDefaults,
  { hostNetwork }: Partial<V1PodSpec>,
): SupervisedParts {
  const { mode, fault } = resolveSupervisorMode(
    supervision,
    supervisor,
    runner.command !== undefined,
  );
  if (fault !== undefined) throw new ComputeError('invalid', fault);
  if (mode === 'none' || supervision === undefined)
    return { annotations: {}, initContainers: [], volumes: [], runner };
  const pod = { name: podName(identity), hostNetwork: hostNetwork === true };
  return withSupervisor(runner, pod, supervision, mode, supervisor);
}

/** Returns the containers of a pod, and its init containers and volumes if there are any. */
function containersAndVolumes(
  request: PodRequest,
  spec: Partial<V1PodSpec>,
  {
    registration,
    supervised,
    kept,
  }: {
    readonly registration: RegistrationPodParts;
    readonly supervised: SupervisedParts;
    readonly kept: StepStoragePodParts;
  },
): Pick<V1PodSpec, 'containers' | 'initContainers' | 'volumes'> {
  const initContainers = [
    ...supervised.initContainers,
    ...kept.initContainers,
    ...(spec.initContainers ?? []).filter((container) => !isRegister(container)),
    ...registration.initContainers,
  ];
  const volumes = [
    ...(spec.volumes ?? []),
    ...networkPodParts(request).volumes,
    ...claimVolumes(request.identity, request.volumeClaims ?? []),
    ...supervised.volumes,
    ...kept.volumes,
    ...registration.volumes,
  ];
  return {
    containers: [
      ...kept.containers,
      { ...kept.runner, name: RUNNER_CONTAINER },
      ...(spec.containers ?? []).filter(({ name }) => name !== RUNNER_CONTAINER),
    ],
    ...(initContainers.length === 0 ? {} : { initContainers }),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
}

/**
 * Adds the artifact store to a step, or the claim of its job. The store needs the supervisor,
 * without which the uploader cannot know that the step has ended.
 * @throws ComputeError `invalid` if the step shares processes with its uploader, or has no job
 */
function withStorage(
  { runner, port }: SupervisedParts,
  { storage, identity }: PodRequest,
  { store, jobClaim }: PodDefaults,
  { volumes = [], securityContext, shareProcessNamespace, hostPID }: Partial<V1PodSpec>,
): StepStoragePodParts {
  if (storage !== undefined && store === undefined) {
    if (jobClaim === undefined) return withUnstoredArtifacts(runner);
    if (storage.job === undefined)
      throw new ComputeError('invalid', 'storage: is for steps of jobs alone; leave it out');
    return withJobClaim(runner, claimName(storage.job, JOB_CLAIM));
  }
  if (storage === undefined || store === undefined || port === undefined)
    return { annotations: {}, initContainers: [], containers: [], volumes: [], runner };
  // A step that sees the process of its uploader can read the uploader's access to the store,
  // including its key.
  for (const [field, asked] of Object.entries({ shareProcessNamespace, hostPID })) {
    if (asked === true)
      throw new ComputeError(
        'invalid',
        `pod.spec.${field}: a step with stored artifacts must not see the processes of its uploader; remove the field, or the worker's store`,
      );
  }
  return withStepStorage(runner, { storage, identity }, store, {
    port,
    volumes,
    ofPod: securityContext,
  });
}

/**
 * Returns whether a pod shares a namespace of its node. The API server rejects `hostUsers: false`
 * together with these.
 */
const sharesHost = ({ hostNetwork, hostPID, hostIPC }: Partial<V1PodSpec>): boolean =>
  [hostNetwork, hostPID, hostIPC].includes(true);

const isRegister = ({ name }: V1Container): boolean => name === REGISTER_CONTAINER;

/** Returns the annotations about the request and the registration. */
const requestAnnotations = (
  request: PodRequest,
  secret: SecretEnv | undefined,
): Record<string, string> => ({
  ...identityAnnotations(request.identity),
  ...secret?.annotations,
  ...jobTimeoutCap(request),
  ...(request.notifyBusy === true ? { [NOTIFY_ANNOTATION]: NOTIFY_BUSY } : {}),
});

function jobTimeoutCap({ jobTimeoutCapMs }: PodRequest): Record<string, string> {
  return jobTimeoutCapMs === undefined
    ? {}
    : { [JOB_TIMEOUT_CAP_ANNOTATION]: formatDuration(jobTimeoutCapMs) };
}

/**
 * Returns all reasons why a request can never become a pod: the error of {@link podSpec}, and the
 * errors of `judge`.
 * @param at - how the runner registers
 */
export function podErrors(
  asked: Omit<PodRequest, 'identity'>,
  defaults: PodDefaults,
  installation: string,
  judge: (pod: V1Pod, request: PodRequest) => string[],
  at?: RegistrationOrigin,
): string[] {
  const identity = { workflowId: '', firstRunId: '', attempt: 1 };
  const { storage } = asked;
  // The job of a step is known when its pod is created.
  const request = {
    ...asked,
    identity,
    ...(storage && { storage: { ...storage, job: identity } }),
  };
  try {
    const pod = podSpec(request, defaults, installation, {
      secretName: podName(request.identity),
      // The pod of a runner that registers itself has one container more.
      keys: at?.mode === 'token' ? tokenVariables(request) : [],
      annotations: registrationAnnotations({ runnerName: '', ...omitUndefined({ at }), env: {} }),
    });
    return withTemplateErrors(() => [...mountErrors(pod), ...judge(pod, request)]);
  } catch (error) {
    if (error instanceof ComputeError) return [error.message];
    throw error;
  }
}

/** Returns all token variables for a runner without supervisor, because its kind is not known. */
function tokenVariables({ supervision }: Omit<PodRequest, 'identity'>): readonly string[] {
  if (supervision === undefined) return TOKEN_VARIABLES;
  const token = RUNNER_KINDS[supervision.runnerKind]?.registration?.token;
  return token === undefined ? [] : [token.variable];
}

/**
 * Returns an error for each mount of a volume that the pod does not have. Otherwise the API server
 * would reject the pod only when the runner starts.
 */
function mountErrors({ spec }: V1Pod): string[] {
  const volumes = new Set((spec?.volumes ?? []).map(({ name }) => name));
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap(
    ({ name: container, volumeMounts = [] }) =>
      volumeMounts
        .filter(({ name }) => !volumes.has(name))
        .map(
          ({ name }) =>
            `pod.spec.volumes: container ${container} mounts the volume ${name}, which the pod does not have; add it, or remove the mount`,
        ),
  );
}

/**
 * Returns the defaults for a runner of the request's kind. A worker has one default image, but may
 * have credentials for CI servers of several kinds.
 */
function defaultsOfKind({ supervision }: PodRequest, defaults: PodDefaults): PodDefaults {
  const kind = supervision?.runnerKind;
  if (kind === undefined || !isImageOfOtherKind(defaults.image, kind)) return defaults;
  const own = RUNNER_KINDS[kind].image;
  if (own === undefined) return defaults;
  const { args: _ofOther, ...rest } = defaults;
  return { ...rest, image: own.name, command: own.command, user: own.user };
}

/** Returns the command without which an image cannot use the runner's registration, if any. */
function neededCommand({ supervision }: PodRequest): readonly string[] | undefined {
  const kind = supervision && RUNNER_KINDS[supervision.runnerKind];
  return kind?.registration?.needsCommand === true ? kind.image?.command : undefined;
}

function runnerContainer(
  { containers = [], securityContext: ofPod }: Partial<V1PodSpec>,
  request: PodRequest,
  defaults: PodDefaults,
): Partial<V1Container> {
  const fromTemplate: Partial<V1Container> | undefined = containers.find(
    ({ name }) => name === RUNNER_CONTAINER,
  );
  const image = request.image ?? fromTemplate?.image ?? defaults.image;
  if (!image)
    throw new ComputeError(
      'invalid',
      `No image for the runner container: set "image" in the input, or the worker's default image`,
    );
  // An image that is not the default has an entry point of its own.
  const byDefault =
    request.image === undefined && fromTemplate?.image === undefined ? defaults : undefined;
  const command =
    request.command ?? fromTemplate?.command ?? byDefault?.command ?? neededCommand(request);
  const args = request.args ?? fromTemplate?.args ?? byDefault?.args;
  const network = networkPodParts(request);
  const env = runnerVariables(fromTemplate?.env ?? [], request, defaults, network.env);
  const volumeMounts = [
    ...withClaimMounts(fromTemplate?.volumeMounts ?? [], request.volumeClaims ?? []),
    ...network.mounts,
  ];
  return {
    ...fromTemplate,
    image,
    securityContext: containerSecurityContext(
      fromTemplate?.securityContext,
      ofPod,
      byDefault?.user,
    ),
    ...(command ? { command: [...command] } : {}),
    ...(args ? { args: [...args] } : {}),
    ...(env.length > 0 ? { env } : {}),
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
  };
}

/** Returns the variables of the runner container. Later ones replace earlier ones of that name. */
function runnerVariables(
  fromTemplate: readonly V1EnvVar[],
  request: PodRequest,
  defaults: PodDefaults,
  ofNetwork: readonly V1EnvVar[],
): V1EnvVar[] {
  const env = new Map<string, V1EnvVar>();
  const resumable =
    request.supervision === undefined && request.volumeClaims === undefined
      ? {}
      : attemptEnvironment(request);
  for (const entry of [
    ...plain(defaults.env),
    ...fromTemplate,
    ...plain(request.env),
    ...plain(resumable),
  ]) {
    env.set(entry.name, entry);
  }
  for (const entry of ofNetwork) {
    // At the end, because variables to which it refers must be before it.
    env.delete(entry.name);
    env.set(entry.name, entry);
  }
  return [...env.values()];
}

function plain(env: Readonly<Record<string, string>> | undefined): V1EnvVar[] {
  return Object.entries(env ?? {}).map(([name, value]) => ({ name, value }));
}

/**
 * Returns the registration as references to its Secret, never as values: someone who may read pods
 * must not be able to register as this runner.
 */
function fromSecret(secret: SecretEnv | undefined): V1EnvVar[] {
  return (secret?.keys ?? []).map((key) => ({
    name: key,
    valueFrom: { secretKeyRef: { name: secret?.secretName ?? '', key } },
  }));
}
