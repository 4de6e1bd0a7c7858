/** From what was asked for to the pod that is created. Pure. */
import type {
  V1Container,
  V1EnvVar,
  V1Pod,
  V1PodSecurityContext,
  V1PodSpec,
} from '@kubernetes/client-node';
import { REGISTER_CONTAINER, RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { TOKEN_VARIABLES } from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { formatDuration } from '../../../core/domain/duration.ts';
import { podName } from '../naming.ts';
import { ComputeError } from '../../ports.ts';
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
import { withRegistration } from './registrationContainer.ts';
import {
  withStepStorage,
  withUnstoredArtifacts,
  type StepStoragePodParts,
  type ArtifactStoreConfig,
} from './stepStorage.ts';
import {
  attemptEnvironment,
  withSupervisor,
  resolveSupervisorMode,
  type SupervisorSettings,
} from './supervisorInjection.ts';
import { claimVolumes, withClaimMounts } from './volumeClaims.ts';
import type { PodRequest, PodTemplate } from '../../../core/domain/pod.ts';

/** The worker's own settings, under everything that a request says. */
export interface PodDefaults {
  /** Image of the runner container when the request names none. */
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  /** The user that the default image runs as, by number, where that is not root: then nobody else may. */
  readonly user?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly template?: PodTemplate;
  /** Absent: runners run bare, unless their image brings the supervisor. */
  readonly supervisor?: SupervisorSettings;
  /** Absent: nothing is kept of what jobs' steps leave. */
  readonly store?: ArtifactStoreConfig;
}

/** The Secret of this runner and the variables that it holds. */
export interface SecretEnv {
  readonly secretName: string;
  readonly keys: readonly string[];
  /** What is noted of the registration on the pod, too: it may outlive its Secret. @default nothing */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Lays, from the bottom up: the worker's defaults, the request's template, the request's own fields, what Holdfast injects. What the request
 * may not say was refused when the runner was admitted (core/input/).
 * @throws ComputeError `invalid` when there is no image, or the supervisor cannot be put in
 */
export function podSpec(
  request: PodRequest,
  defaults: PodDefaults,
  installation: string,
  secret: SecretEnv | undefined,
): V1Pod {
  const template = mergeTemplates(defaults.template ?? {}, request.template ?? {}) as PodTemplate;
  const spec = (template.spec ?? {}) as Partial<V1PodSpec>;
  const containers = spec.containers ?? [];
  const unregistered = runnerContainer(
    containers.find((container) => container.name === RUNNER_CONTAINER),
    request,
    defaults,
    spec.securityContext,
  );
  const network = networkPodParts(request);
  const [register] = (spec.initContainers ?? []).filter(isRegister);
  const registration = withRegistration(
    unregistered,
    register,
    [...(spec.volumes ?? []), ...network.volumes],
    fromSecret(secret),
  );
  const bare = registration.runner;
  const { mode, fault } = resolveSupervisorMode(
    request.supervision,
    defaults.supervisor,
    bare.command !== undefined,
  );
  if (fault !== undefined) throw new ComputeError('invalid', fault);
  const name = podName(request.identity);
  const parts =
    mode === 'none' || request.supervision === undefined
      ? { annotations: {}, initContainers: [], volumes: [], runner: bare, port: undefined }
      : withSupervisor(
          bare,
          { name, hostNetwork: spec.hostNetwork === true },
          request.supervision,
          mode,
          defaults.supervisor,
        );
  const { runner, ...kept } = withStorage(parts, request, defaults, spec);
  const initContainers = [
    ...parts.initContainers,
    ...kept.initContainers,
    ...(spec.initContainers ?? []).filter((container) => !isRegister(container)),
    ...registration.initContainers,
  ];
  const volumes = [
    ...(spec.volumes ?? []),
    ...network.volumes,
    ...claimVolumes(request.identity, request.volumeClaims ?? []),
    ...parts.volumes,
    ...kept.volumes,
    ...registration.volumes,
  ];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: installationLabels(installation, {
        ...template.metadata?.labels,
        ...request.labels,
        ...workflowLabel(request.identity),
      }),
      annotations: {
        ...template.metadata?.annotations,
        ...identityAnnotations(request.identity),
        ...secret?.annotations,
        ...jobTimeoutCap(request),
        ...(request.notifyBusy === true ? { [NOTIFY_ANNOTATION]: NOTIFY_BUSY } : {}),
        ...parts.annotations,
        ...kept.annotations,
      },
    },
    spec: {
      // A CI job is other people's code: it gets a token of the cluster only where the template says so.
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...spec,
      securityContext: podSecurityContext(spec.securityContext),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: request.terminationGracePeriodSeconds,
      containers: [
        ...kept.containers,
        { ...runner, name: RUNNER_CONTAINER },
        ...containers.filter((container) => container.name !== RUNNER_CONTAINER),
      ],
      ...(initContainers.length === 0 ? {} : { initContainers }),
      ...(volumes.length === 0 ? {} : { volumes }),
    },
  };
}

/** Without the supervisor nobody could tell that a step has ended. */
function withStorage(
  { runner, port }: { runner: Partial<V1Container>; port: number | undefined },
  { storage, identity }: PodRequest,
  { store }: PodDefaults,
  { volumes = [], securityContext, shareProcessNamespace, hostPID }: Partial<V1PodSpec>,
): StepStoragePodParts {
  if (storage !== undefined && store === undefined) return withUnstoredArtifacts(runner);
  if (storage === undefined || store === undefined || port === undefined)
    return { annotations: {}, initContainers: [], containers: [], volumes: [], runner };
  // A step that sees its uploader's process reads what that has of the store, its key included.
  for (const [field, asked] of Object.entries({ shareProcessNamespace, hostPID })) {
    if (asked === true)
      throw new ComputeError(
        'invalid',
        `pod.spec.${field}: a step whose things are stored must not see its uploader's processes; remove it, or the worker's store`,
      );
  }
  return withStepStorage(runner, { storage, identity }, store, {
    port,
    volumes,
    ofPod: securityContext,
  });
}

const isRegister = ({ name }: V1Container): boolean => name === REGISTER_CONTAINER;

function jobTimeoutCap({ jobTimeoutCapMs }: PodRequest): Record<string, string> {
  return jobTimeoutCapMs === undefined
    ? {}
    : { [JOB_TIMEOUT_CAP_ANNOTATION]: formatDuration(jobTimeoutCapMs) };
}

/** Everything that would keep a request from ever being a pod: what {@link podSpec} throws, and what `judge` says of the pod. */
export function podErrors(
  asked: Omit<PodRequest, 'identity'>,
  defaults: PodDefaults,
  installation: string,
  judge: (pod: V1Pod, request: PodRequest) => string[],
): string[] {
  const request = { ...asked, identity: { workflowId: '', firstRunId: '', attempt: 1 } };
  try {
    // As a static runner's, which has a container more than others.
    const pod = podSpec(request, defaults, installation, {
      secretName: podName(request.identity),
      keys: TOKEN_VARIABLES,
    });
    return [...mountErrors(pod), ...judge(pod, request)];
  } catch (error) {
    if (error instanceof ComputeError) return [error.message];
    throw error;
  }
}

/** Mounts of volumes that the pod does not have: the API server rejects them when the runner is about to start. */
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

function runnerContainer(
  fromTemplate: Partial<V1Container> | undefined,
  request: PodRequest,
  defaults: PodDefaults,
  ofPod: V1PodSecurityContext | undefined,
): Partial<V1Container> {
  const image = request.image ?? fromTemplate?.image ?? defaults.image;
  if (!image)
    throw new ComputeError(
      'invalid',
      `No image for the runner container: set "image" in the input, or the worker's default image`,
    );
  // An image of the runner's own brings its own entry point.
  const byDefault =
    request.image === undefined && fromTemplate?.image === undefined ? defaults : undefined;
  const command = request.command ?? fromTemplate?.command ?? byDefault?.command;
  const args = request.args ?? fromTemplate?.args ?? byDefault?.args;
  const env = new Map<string, V1EnvVar>();
  const resumable =
    request.supervision === undefined && request.volumeClaims === undefined
      ? {}
      : attemptEnvironment(request);
  for (const entry of [
    ...plain(defaults.env),
    ...(fromTemplate?.env ?? []),
    ...plain(request.env),
    ...plain(resumable),
  ]) {
    env.set(entry.name, entry);
  }
  const network = networkPodParts(request);
  for (const entry of network.env) {
    // At the end: what it refers to has to be before it.
    env.delete(entry.name);
    env.set(entry.name, entry);
  }
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
    ...(env.size > 0 ? { env: [...env.values()] } : {}),
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
  };
}

function plain(env: Readonly<Record<string, string>> | undefined): V1EnvVar[] {
  return Object.entries(env ?? {}).map(([name, value]) => ({ name, value }));
}

/** By reference, never in clear: whoever may read pods must not thereby be able to register as this runner. */
function fromSecret(secret: SecretEnv | undefined): V1EnvVar[] {
  return (secret?.keys ?? []).map((key) => ({
    name: key,
    valueFrom: { secretKeyRef: { name: secret?.secretName ?? '', key } },
  }));
}
