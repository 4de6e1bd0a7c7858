/**
 * The init container in which a runner with a registration token registers. Its holder can register
 * runners in the whole scope for an hour with that token. So it never gets into a container that
 * runs a job, where any step could read it from the environment of a process. Pure.
 */
import type {
  V1Container,
  V1EnvVar,
  V1PodSecurityContext,
  V1PodSpec,
  V1ResourceRequirements,
  V1SecurityContext,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodTemplate } from '../../../core/domain/pod.ts';
import {
  REGISTER_CONTAINER,
  REGISTRATION_PATH,
  RUNNER_CONTAINER,
} from '../../../core/domain/podTemplate.ts';
import type { TokenRegistration } from '../../../core/domain/runnerKinds/runnerKind.ts';
import { registrationWithToken } from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { ComputeError } from '../../ports/computeError.ts';
import { mergeTemplates } from './mergeTemplates.ts';
import { containerSecurityContext } from './podSecurity.ts';

const REGISTRATION_VOLUME = 'holdfast-registration';
const REGISTRATION_MOUNT = { name: REGISTRATION_VOLUME, mountPath: REGISTRATION_PATH };
/** Prefix of the container's own copies of the worker's volumes. */
const COPY_PREFIX = 'holdfast-register-';
/** Variable with the directory of the registration files, also in the runner container. */
const REGISTRATION_DIR: V1EnvVar = { name: 'HOLDFAST_REGISTRATION_DIR', value: REGISTRATION_PATH };

/**
 * Kinds of volumes that start with the pod. The container gets copies of the worker's, so that no
 * other container of the pod can put anything into them.
 */
const COPIED_VOLUMES = ['configMap', 'downwardAPI', 'emptyDir', 'projected', 'secret'];

/** Parts of a pod with which its runner is registered when it starts. */
export interface RegistrationPodParts {
  /** Init containers, to be placed after all others. */
  readonly initContainers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
}

/** The worker's settings for the container that registers. */
export interface RegistrationDefaults {
  readonly image?: string;
  /** UID of the default image, if it is not root. */
  readonly user?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly template?: PodTemplate;
}

/**
 * Gives the runner its registration. A registration for this runner alone is set as variables. A
 * token is given to a separate init container instead, which consists of the worker's settings:
 * users who may start a runner choose neither its program nor what that trusts.
 * @param runner - runner container without a registration. The init container gets its resources
 * @param pod - spec of the merged template
 * @param secretEnv - variables of the registration
 * @throws ComputeError `invalid` if the settings have no image for the container, or if other
 * containers of the pod can see its processes
 */
export function withRegistration(
  runner: Partial<V1Container>,
  pod: Partial<V1PodSpec>,
  defaults: RegistrationDefaults,
  secretEnv: readonly V1EnvVar[],
): RegistrationPodParts {
  const kind = registrationWithToken(secretEnv.map(({ name }) => name));
  if (kind === undefined)
    return { initContainers: [], volumes: [], runner: withEnv(runner, secretEnv) };
  rejectSharedProcesses(pod);
  const { container, volumes } = registerContainer(kind, runner, defaults, secretEnv);
  const shown = secretEnv.filter(({ name }) => name !== kind.variable);
  return {
    initContainers: [container],
    volumes: [
      { name: REGISTRATION_VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      ...volumes,
    ],
    runner: {
      ...withEnv(runner, [...shown, REGISTRATION_DIR]),
      volumeMounts: [...(runner.volumeMounts ?? []), { ...REGISTRATION_MOUNT, readOnly: true }],
    },
  };
}

/**
 * Rejects pods whose containers share processes. A container that sees the process of the
 * registration can read the token in its environment.
 */
function rejectSharedProcesses({ shareProcessNamespace, hostPID }: Partial<V1PodSpec>): void {
  for (const [field, asked] of Object.entries({ shareProcessNamespace, hostPID })) {
    if (asked === true)
      throw new ComputeError(
        'invalid',
        `pod.spec.${field}: must not be true for a static runner, whose registration token other containers could then read; remove it, or set ephemeral to true`,
      );
  }
}

function registerContainer(
  { command }: TokenRegistration,
  { resources }: Partial<V1Container>,
  defaults: RegistrationDefaults,
  secretEnv: readonly V1EnvVar[],
): { container: V1Container; volumes: V1Volume[] } {
  const { volumes = [], ...spec } = (defaults.template?.spec ?? {}) as Partial<V1PodSpec>;
  const runner = (spec.containers ?? []).find(({ name }) => name === RUNNER_CONTAINER);
  const own = (spec.initContainers ?? []).find(({ name }) => name === REGISTER_CONTAINER);
  const image = own?.image ?? runner?.image ?? defaults.image;
  if (!image)
    throw new ComputeError(
      'invalid',
      `No image for the container that registers a static runner: set the worker's default image, or one of ${REGISTER_CONTAINER} in its pod template`,
    );
  const { imagePullPolicy, env = [], envFrom, workingDir, volumeMounts } = runner ?? {};
  const inherited = {
    ...omitUndefined({ imagePullPolicy, envFrom, workingDir, volumeMounts }),
    env: [...Object.entries(defaults.env ?? {}).map(([name, value]) => ({ name, value })), ...env],
    securityContext: registerSecurityContext(runner?.securityContext, spec.securityContext, {
      ...(image === defaults.image ? omitUndefined({ user: defaults.user }) : {}),
    }),
    ...(resources && { resources: amountsOf(resources) }),
  };
  const container = mergeTemplates(
    { command: [...command], ...inherited },
    own ?? {},
  ) as Partial<V1Container>;
  const copies = copiedVolumes(container.volumeMounts ?? [], volumes);
  return {
    container: {
      ...withEnv(container, [...secretEnv, REGISTRATION_DIR]),
      image,
      volumeMounts: [...copies.mounts, REGISTRATION_MOUNT],
      name: REGISTER_CONTAINER,
    },
    volumes: copies.volumes,
  };
}

/**
 * Returns the security context of the container that registers. It sets the worker's user
 * explicitly, because the pod's security context might change it.
 */
function registerSecurityContext(
  ofRunner: V1SecurityContext | undefined,
  ofPod: V1PodSecurityContext = {},
  { user }: { user?: number },
): V1SecurityContext {
  const { runAsUser, runAsGroup, runAsNonRoot } = ofPod;
  const template = mergeTemplates(omitUndefined({ runAsUser, runAsGroup, runAsNonRoot }), ofRunner);
  return containerSecurityContext(template as V1SecurityContext, undefined, user);
}

/** Returns the resources without claims of devices, which the runner's containers share. */
function amountsOf({ limits, requests }: V1ResourceRequirements): V1ResourceRequirements {
  return omitUndefined({ limits, requests });
}

function copiedVolumes(
  mounts: readonly V1VolumeMount[],
  volumes: readonly V1Volume[],
): { mounts: V1VolumeMount[]; volumes: V1Volume[] } {
  const copies = new Map(
    volumes
      .filter((volume) => COPIED_VOLUMES.some((kind) => kind in volume))
      .filter(({ name }) => mounts.some((mount) => mount.name === name))
      .map((volume, index) => [volume.name, renamed(volume, `${COPY_PREFIX}${index}`)]),
  );
  return {
    mounts: mounts.flatMap((mount) => {
      const copy = copies.get(mount.name);
      return copy === undefined ? [] : [renamed(mount, copy.name)];
    }),
    volumes: [...copies.values()],
  };
}

function renamed<T extends { name: string }>(object: T, name: string): T {
  return { ...object, name };
}

/** Adds environment variables. They replace others of the same name. */
function withEnv(container: Partial<V1Container>, own: readonly V1EnvVar[]): Partial<V1Container> {
  const env = new Map(
    [...(container.env ?? []), ...own].map((variable) => [variable.name, variable]),
  );
  return env.size === 0 ? container : { ...container, env: [...env.values()] };
}
