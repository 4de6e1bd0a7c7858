/**
 * The init container in which a runner with a registration token registers. That token lets its holder register runners in the whole scope for an
 * hour: it never gets into a container that a job runs in, where any step could read it from a process' environment. Pure.
 */
import type { V1Container, V1EnvVar, V1Volume } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { REGISTER_CONTAINER, REGISTRATION_PATH } from '../../../core/domain/podTemplate.ts';
import type { RunnerRegistration } from '../../../core/domain/runnerKinds/runnerKind.ts';
import { registrationWithToken } from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { mergeTemplates } from './mergeTemplates.ts';

const REGISTRATION_VOLUME = 'holdfast-registration';
const REGISTRATION_MOUNT = { name: REGISTRATION_VOLUME, mountPath: REGISTRATION_PATH };
/** Says where the files are; in the runner's container as well. */
const REGISTRATION_DIR: V1EnvVar = { name: 'HOLDFAST_REGISTRATION_DIR', value: REGISTRATION_PATH };

/** Kinds of volumes that no earlier job can have written to: what such a one left (a script, say) must not get the token. */
const FRESH_VOLUMES = ['configMap', 'downwardAPI', 'emptyDir', 'projected', 'secret'];

/** What a pod needs so that its runner is registered when it starts. */
export interface RegistrationPodParts {
  /** After all others. */
  readonly initContainers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
}

/**
 * Gives the runner its registration: as variables, where it is for this runner alone; a token to a container of its own instead.
 * @param runner - the runner container as it would run without one: its image, rights and resources are the registration's, too
 * @param template - the user's own words on the registration's container
 * @param volumes - the pod's, without claims
 * @param secretEnv - the registration
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

/** Holdfast's own replace others of the same name. */
function withEnv(container: Partial<V1Container>, own: readonly V1EnvVar[]): Partial<V1Container> {
  const env = new Map(
    [...(container.env ?? []), ...own].map((variable) => [variable.name, variable]),
  );
  return env.size === 0 ? container : { ...container, env: [...env.values()] };
}
