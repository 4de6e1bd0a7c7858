/**
 * The init container in which a runner with a registration token registers. Its holder can register
 * runners in the whole scope for an hour with that token. So it never gets into a container that
 * runs a job, where any step could read it from the environment of a process. Pure.
 */
import type { V1Container, V1EnvVar, V1Volume } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { REGISTER_CONTAINER, REGISTRATION_PATH } from '../../../core/domain/podTemplate.ts';
import type { RunnerRegistration } from '../../../core/domain/runnerKinds/runnerKind.ts';
import { registrationWithToken } from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { mergeTemplates } from './mergeTemplates.ts';

const REGISTRATION_VOLUME = 'holdfast-registration';
const REGISTRATION_MOUNT = { name: REGISTRATION_VOLUME, mountPath: REGISTRATION_PATH };
/** Variable with the directory of the registration files, also in the runner container. */
const REGISTRATION_DIR: V1EnvVar = { name: 'HOLDFAST_REGISTRATION_DIR', value: REGISTRATION_PATH };

/**
 * Kinds of volumes to which no earlier job can have written. Anything that an earlier job left,
 * such as a script, must not get the token.
 */
const FRESH_VOLUMES = ['configMap', 'downwardAPI', 'emptyDir', 'projected', 'secret'];

/** Parts of a pod with which its runner is registered when it starts. */
export interface RegistrationPodParts {
  /** Init containers, to be placed after all others. */
  readonly initContainers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
}

/**
 * Gives the runner its registration. A registration for this runner alone is set as variables. A
 * token is given to a separate init container instead.
 * @param runner - runner container without a registration. The init container uses its image,
 * security context and resources too
 * @param template - the user's settings for the init container
 * @param volumes - volumes of the pod without claims
 * @param secretEnv - variables of the registration
 */
export function withRegistration(
  runner: Partial<V1Container>,
  template: Partial<V1Container> | undefined,
  volumes: readonly V1Volume[],
  secretEnv: readonly V1EnvVar[],
): RegistrationPodParts {
  const kind = registrationWithToken(secretEnv.map(({ name }) => name));
  if (kind === undefined)
    return { initContainers: [], volumes: [], runner: withEnv(runner, secretEnv) };
  const shown = secretEnv.filter(({ name }) => name !== kind.tokenVariable);
  return {
    initContainers: [registerContainer(kind, runner, template, volumes, secretEnv)],
    volumes: [{ name: REGISTRATION_VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
    runner: {
      ...withEnv(runner, [...shown, REGISTRATION_DIR]),
      volumeMounts: [...(runner.volumeMounts ?? []), { ...REGISTRATION_MOUNT, readOnly: true }],
    },
  };
}

function registerContainer(
  { command }: RunnerRegistration,
  runner: Partial<V1Container>,
  template: Partial<V1Container> | undefined,
  volumes: readonly V1Volume[],
  secretEnv: readonly V1EnvVar[],
): V1Container {
  const {
    image,
    imagePullPolicy,
    env,
    envFrom,
    resources,
    securityContext,
    workingDir,
    volumeMounts = [],
  } = runner;
  const fresh = new Set(
    volumes
      .filter((volume) => FRESH_VOLUMES.some((kind) => kind in volume))
      .map(({ name }) => name),
  );
  const inherited = omitUndefined({
    image,
    imagePullPolicy,
    env,
    envFrom,
    resources,
    securityContext,
    workingDir,
    volumeMounts: volumeMounts.filter(({ name }) => fresh.has(name)),
  });
  const container = mergeTemplates(
    { command: [...command], ...inherited },
    template ?? {},
  ) as Partial<V1Container>;
  return {
    ...withEnv(container, [...secretEnv, REGISTRATION_DIR]),
    volumeMounts: [...(container.volumeMounts ?? []), REGISTRATION_MOUNT],
    name: REGISTER_CONTAINER,
  };
}

/** Adds environment variables. They replace others of the same name. */
function withEnv(container: Partial<V1Container>, own: readonly V1EnvVar[]): Partial<V1Container> {
  const env = new Map(
    [...(container.env ?? []), ...own].map((variable) => [variable.name, variable]),
  );
  return env.size === 0 ? container : { ...container, env: [...env.values()] };
}
