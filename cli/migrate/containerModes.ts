/**
 * Writes out what ARC adds to a pod for its container modes. Holdfast has no such modes: the pod
 * template is complete. The parts are those that the chart gha-runner-scale-set adds:
 * https://github.com/actions/actions-runner-controller/blob/master/charts/gha-runner-scale-set/values.yaml.
 * Pure.
 */
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import type { Json, SetDraft } from './setDraft.ts';

const WORK = { name: 'work', mountPath: '/home/runner/_work' };
const SOCKET = { name: 'dind-sock', mountPath: '/var/run' };
const EXTERNALS = 'dind-externals';

/** Settings of the Docker daemon next to the runner. */
export interface DockerDaemon {
  /**
   * Fields of its container that override those of the chart. `args`, `env` and `volumeMounts` are
   * added to the chart's.
   */
  readonly container: Json;
  readonly args: readonly string[];
  readonly env: readonly Json[];
  readonly volumeMounts: readonly Json[];
  /**
   * Volume source for its socket.
   * @default an emptyDir
   */
  readonly socketVolume?: Json;
}

/**
 * Adds a Docker daemon next to the runner, as a native sidecar that outlives it.
 * @param field - field of ARC, for the note
 */
export function addDockerDaemon(
  draft: SetDraft,
  field: string,
  { container, args, env, volumeMounts, socketVolume = {} }: DockerDaemon,
): void {
  const image = draft.parts.template['image'] ?? GITHUB_RUNNER.image.name;
  draft.env({ name: 'DOCKER_HOST', value: 'unix:///var/run/docker.sock' });
  draft.env({ name: 'RUNNER_WAIT_FOR_DOCKER_IN_SECONDS', value: '120' });
  // The daemon mounts directories of jobs into their containers, so it must have the same volumes.
  const work = draft.mount({ ...WORK });
  draft.mount({ ...SOCKET });
  draft.initContainers.unshift(
    {
      name: 'init-dind-externals',
      image,
      command: ['cp', '-r', '/home/runner/externals/.', '/home/runner/tmpDir/'],
      volumeMounts: [{ name: EXTERNALS, mountPath: '/home/runner/tmpDir' }],
    },
    {
      name: 'dind',
      image: 'docker:dind',
      securityContext: { privileged: true },
      restartPolicy: 'Always',
      startupProbe: {
        exec: { command: ['docker', 'info'] },
        initialDelaySeconds: 0,
        failureThreshold: 24,
        periodSeconds: 5,
      },
      ...container,
      args: [
        'dockerd',
        '--host=unix:///var/run/docker.sock',
        '--group=$(DOCKER_GROUP_GID)',
        ...args,
      ],
      env: [{ name: 'DOCKER_GROUP_GID', value: '123' }, ...env],
      volumeMounts: [
        { ...work },
        { ...SOCKET },
        { name: EXTERNALS, mountPath: '/home/runner/externals' },
        ...volumeMounts,
      ],
    },
  );
  if (work['name'] === WORK.name) draft.volume({ name: WORK.name, emptyDir: {} });
  draft.volume({ name: SOCKET.name, emptyDir: socketVolume });
  draft.volume({ name: EXTERNALS, emptyDir: {} });
  draft.note(
    field,
    "a Docker daemon next to the runner: it is privileged, which the worker's pod policy must allow (privileged: true), and a job that escapes from it controls the node. If no job needs Docker, leave out what is called dind, work and DOCKER",
    'spec',
    'initContainers',
  );
}

/**
 * Adds jobs in separate pods, which the runner's hooks create.
 * @param workClaim - spec of the claim for the work directory. Absent: no such volume
 */
export function addJobPods(draft: SetDraft, field: string, workClaim: unknown): void {
  const folder = workClaim === undefined ? 'k8s-novolume' : 'k8s';
  draft.env({ name: 'ACTIONS_RUNNER_CONTAINER_HOOKS', value: `/home/runner/${folder}/index.js` });
  draft.env({
    name: 'ACTIONS_RUNNER_POD_NAME',
    valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
  });
  draft.env({ name: 'ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER', value: 'true' });
  if (workClaim === undefined)
    draft.env({
      name: 'ACTIONS_RUNNER_IMAGE',
      value: draft.parts.template['image'] ?? GITHUB_RUNNER.image.name,
    });
  else {
    draft.mount({ ...WORK });
    draft.volume({ name: 'work', ephemeral: { volumeClaimTemplate: { spec: workClaim } } });
  }
  draft.put('spec', 'automountServiceAccountToken', true);
  draft.note(
    field,
    "jobs in pods of their own, made by the runner's hooks, which go when their runner's pod goes. The hooks need a service account that may make them (pods, pods/exec, pods/log, secrets) in a namespace for this set alone, which the runners name (namespace) and the worker too (HOLDFAST_JOB_POD_NAMESPACES), and the worker's pod policy has to allow it (serviceAccounts)",
    'spec',
    'serviceAccountName',
  );
  if (draft.parts.spec['serviceAccountName'] === undefined)
    draft.needsDecision(
      field,
      'no service account is named, and that of the chart goes with its release: make one of your own, and name it in serviceAccountName',
      'spec',
    );
}
