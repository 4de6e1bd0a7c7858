/**
 * Converts a RunnerDeployment, RunnerReplicaSet, RunnerSet or Runner of the legacy mode of ARC
 * (actions.summerwind.dev). Pure.
 */
import { parseDuration } from '../../core/domain/duration.ts';
import { RUNNER_CONTAINER } from '../../core/domain/podTemplate.ts';
import type { ArcObject, Fields } from './arcObjects.ts';
import { addDockerDaemon, addJobPods } from './containerModes.ts';
import {
  convertFields,
  getPath,
  nested,
  toText,
  ignored,
  copyTo,
  unsupported,
  type FieldRow,
  type FieldRows,
} from './fieldRows.ts';
import {
  envRow,
  POD_SPEC_ROWS,
  podMetadataRow,
  RUNNER_CONTAINER_ROWS,
  sameField,
  serviceAccountRow,
} from './podRows.ts';
import { credentialFromSecret, groupRow } from './scaleSetRows.ts';
import { quoted, type Json, type SetDraft } from './setDraft.ts';
import { convertClaims } from './volumeClaims.ts';

const SELF_HOSTED = 'self-hosted';
/** Time that the entry point of ARC's images gives a job after SIGTERM (s). */
const GRACEFUL_STOP = 'RUNNER_GRACEFUL_STOP_TIMEOUT';
/** Directory of the runner in the images of this mode. */
const LEGACY_HOME = /^\/runner(?=\/|$)/;
const USUAL_IMAGE =
  /^(docker\.io\/)?(summerwind|ghcr\.io\/actions-runner-controller\/actions-runner-controller)\/actions-runner(-dind(-rootless)?)?([:@]|$)/;

const labelsRow: FieldRow = (value, draft, field) => {
  if (!Array.isArray(value)) return draft.addError(field, 'must be a list');
  // config.sh reads one list with commas, so such a text is several labels.
  const labels = (value as unknown[]).flatMap((each) =>
    typeof each === 'string' ? each.split(',').map((label) => label.trim()) : [each],
  );
  if (labels.length > value.length)
    draft.note(field, 'a label with commas is several labels', 'template', 'labels');
  draft.put('template', 'labels', [...new Set([SELF_HOSTED, ...labels])]);
};

const imageRow: FieldRow = (value, draft, field) => {
  const reason = `${quoted(value)} is left out: the images of this mode register themselves with a token when they start, and Holdfast gives none to a container that a job runs in`;
  if (typeof value === 'string' && USUAL_IMAGE.test(value))
    return draft.note(
      field,
      `${reason}. The worker's own is used (HOLDFAST_RUNNER_IMAGE)`,
      'template',
    );
  draft.needsDecision(
    field,
    `${reason}. Build your tools on GitHub's image (deploy/images/runner.Dockerfile shows how), and name that: image`,
    'template',
  );
};

/** Row of `githubAPICredentialsFrom`. A missing name of the Secret is an error. */
export const credentialsFromRow: FieldRow = (value, draft, field) => {
  const secret = getPath(value, 'secretRef', 'name');
  if (typeof secret !== 'string' || secret === '')
    return draft.addError(`${field}.secretRef.name`, 'is missing');
  credentialFromSecret(secret, draft, `${field}.secretRef.name`);
};

/**
 * Rows of the fields that a Runner, the template of a RunnerDeployment, and the spec of a RunnerSet
 * have in common.
 */
export const RUNNER_CONFIG_ROWS: FieldRows = {
  enterprise: copyTo('template', 'enterprise'),
  organization: copyTo('template', 'organization'),
  repository: copyTo('template', 'repository'),
  labels: labelsRow,
  group: groupRow,
  ephemeral: (value, draft) =>
    value === true ? undefined : draft.put('template', 'ephemeral', value),
  image: imageRow,
  workDir: unsupported(
    "left out: jobs run in /home/runner/_work of GitHub's image. Mount there what they need",
    'template',
  ),
  githubAPICredentialsFrom: credentialsFromRow,
  // addDocker and addWorkFolder read these.
  dockerEnabled: ignored,
  dockerdWithinRunnerContainer: ignored,
  dockerMTU: ignored,
  dockerRegistryMirror: ignored,
  dockerVarRunVolumeSizeLimit: ignored,
  volumeSizeLimit: ignored,
  volumeStorageMedium: ignored,
  containerMode: ignored,
  workVolumeClaimTemplate: ignored,
};

/**
 * Variables that only the entry point of ARC's images reads
 * (https://github.com/actions/actions-runner-controller/blob/master/runner/startup.sh), with their
 * replacements.
 */
const ENTRY_POINT_VARIABLES: Readonly<Record<string, string>> = {
  DISABLE_RUNNER_UPDATE: 'disableUpdate, which is true by default',
  STARTUP_DELAY_IN_SECONDS: 'nothing: a runner starts when its pod does',
  DISABLE_WAIT_FOR_DOCKER: 'nothing: the daemon is a sidecar that has started before the runner',
  WAIT_FOR_DOCKER_SECONDS: 'the startupProbe of the daemon',
  DOCKER_ENABLED: 'the container mode',
  DOCKERD_IN_RUNNER: 'the container mode',
  DOCKER_REGISTRY_MIRROR: 'the arguments of the daemon',
  MTU: 'the arguments of the daemon',
  RUNNER_EPHEMERAL: 'ephemeral',
  RUNNER_FEATURE_FLAG_ONCE: 'ephemeral',
  RUNNER_FEATURE_FLAG_EPHEMERAL: 'ephemeral',
  RUNNER_ASSETS_DIR: 'the image',
  RUNNER_HOME: 'the image',
  RUNNER_STATUS_UPDATE_HOOK: 'nothing: the supervisor reports it',
  UNITTEST: 'nothing',
};

const legacyEnvRow: FieldRow = (value, draft, field, key) => {
  const all = draft.objects(value, field);
  const grace = all.find(({ name }) => name === GRACEFUL_STOP);
  const isEntryPoints = ({ name }: Json): boolean =>
    typeof name === 'string' && Object.hasOwn(ENTRY_POINT_VARIABLES, name);
  for (const { name } of all.filter(isEntryPoints))
    draft.note(
      field,
      `${toText(name)} is left out: only the entry point of ARC's images reads it. In its place: ${ENTRY_POINT_VARIABLES[toText(name)]}`,
      'runner',
      'env',
    );
  envRow(
    all.filter((variable) => variable !== grace && !isEntryPoints(variable)),
    draft,
    field,
    key,
  );
  const timeout = `${toText(grace?.['value'])}s`;
  if (grace === undefined || (parseDuration(timeout) ?? 0) <= 0) return;
  draft.put('template', 'onTerm', 'drain');
  draft.put('template', 'stop', {
    ...(draft.parts.template['stop'] as Json | undefined),
    drainTimeout: timeout,
  });
  draft.note(
    `${field}.${GRACEFUL_STOP}`,
    "how long a job may go on after SIGTERM: onTerm drain, and stop.drainTimeout. It needs the supervisor (the worker's HOLDFAST_SUPERVISOR_IMAGE)",
    'template',
    'onTerm',
  );
};

const legacyMountsRow: FieldRow = (value, draft, field) => {
  const mounts = draft.objects(value, field);
  const moved = mounts.map((mount) =>
    typeof mount['mountPath'] === 'string' && LEGACY_HOME.test(mount['mountPath'])
      ? { ...mount, mountPath: mount['mountPath'].replace(LEGACY_HOME, '/home/runner') }
      : mount,
  );
  draft.runnerField('volumeMounts').push(...moved);
  if (moved.some((mount, index) => mount !== mounts[index]))
    draft.note(
      field,
      "/runner, where ARC's images have the runner, is /home/runner in GitHub's: the paths are changed",
      'runner',
      'volumeMounts',
    );
};

const LEGACY_CONTAINER_ROWS: FieldRows = {
  ...RUNNER_CONTAINER_ROWS,
  image: imageRow,
  env: legacyEnvRow,
  volumeMounts: legacyMountsRow,
};

/**
 * Pod fields that this mode has in addition to those of a Runner. All others are those of a pod
 * spec.
 */
export const RUNNER_POD_ROWS: FieldRows = {
  ...POD_SPEC_ROWS,
  containers: (value, draft, field) => {
    for (const [index, container] of draft.objects(value, field).entries()) {
      if (container['name'] === RUNNER_CONTAINER)
        convertFields(
          container,
          LEGACY_CONTAINER_ROWS,
          `${field}[${index}]`,
          draft,
          sameField('runner'),
        );
      // Fields of the Docker daemon, which addDocker reads.
      else if (container['name'] !== 'docker') draft.containers.push(container);
    }
  },
  sidecarContainers: (value, draft, field) =>
    void draft.containers.push(...draft.objects(value, field)),
  env: legacyEnvRow,
  envFrom: sameField('runner'),
  resources: sameField('runner'),
  imagePullPolicy: sameField('runner'),
  volumeMounts: legacyMountsRow,
  dockerdContainerResources: ignored,
  dockerEnv: ignored,
  dockerVolumeMounts: ignored,
};

const runnerSpecRow: FieldRow = nested(
  { ...RUNNER_POD_ROWS, ...RUNNER_CONFIG_ROWS },
  sameField('spec'),
);
const REPLICAS: FieldRow = copyTo('set', 'replicas');

/** Rows of the spec of a RunnerDeployment or RunnerReplicaSet. */
export const RUNNER_DEPLOYMENT_ROWS: FieldRows = {
  replicas: REPLICAS,
  effectiveTime: ignored,
  selector: ignored,
  template: nested({ metadata: podMetadataRow, spec: runnerSpecRow }),
};

/** Rows of the spec of a RunnerSet. */
export const RUNNER_SET_ROWS: FieldRows = {
  ...RUNNER_CONFIG_ROWS,
  replicas: REPLICAS,
  effectiveTime: ignored,
  selector: ignored,
  serviceName: ignored,
  podManagementPolicy: ignored,
  revisionHistoryLimit: ignored,
  minReadySeconds: ignored,
  updateStrategy: unsupported(
    'left out: a new template replaces the runners one after the other (rollout.maxSurge), and a busy one finishes its job',
    'set',
  ),
  persistentVolumeClaimRetentionPolicy: unsupported(
    'left out: claims of a set are never deleted',
    'template',
    'volumeClaims',
  ),
  ordinals: ignored,
  serviceAccountName: serviceAccountRow,
  template: nested({ metadata: podMetadataRow, spec: nested(RUNNER_POD_ROWS, sameField('spec')) }),
  // Converted after the mounts are known.
  volumeClaimTemplates: ignored,
};

/**
 * Converts an object of the legacy mode.
 * @param scaled - whether an autoscaler determines the number of runners
 */
export function convertLegacy(object: ArcObject, draft: SetDraft, scaled: boolean): void {
  const { kind, fields } = object;
  draft.put('template', 'labels', [SELF_HOSTED]);
  if (kind === 'Runner') runnerSpecRow(fields, draft, 'spec', 'spec');
  else
    convertFields(
      fields,
      kind === 'RunnerSet' ? RUNNER_SET_ROWS : RUNNER_DEPLOYMENT_ROWS,
      'spec',
      draft,
    );
  if (scaled) delete draft.parts.set['replicas'];
  else if (draft.parts.set['replicas'] === undefined) draft.put('set', 'replicas', 1);
  const config =
    kind === 'Runner' || kind === 'RunnerSet' ? fields : getPath(fields, 'template', 'spec');
  const pod = kind === 'Runner' ? fields : getPath(fields, 'template', 'spec');
  const at = config === fields ? 'spec' : 'spec.template.spec';
  if (kind === 'RunnerSet')
    convertClaims(fields['volumeClaimTemplates'], draft, daemonMountsOf(pod, draft, at));
  addDocker((config ?? {}) as Fields, (pod ?? {}) as Fields, draft, at);
  restOfGrace(draft);
}

function daemonMountsOf(pod: unknown, draft: SetDraft, at: string): Json[] {
  const { containers, dockerVolumeMounts } = (pod ?? {}) as Fields;
  const daemon = (Array.isArray(containers) ? containers : []).find(
    (container) => getPath(container, 'name') === 'docker',
  ) as Json | undefined;
  const listOf = (value: unknown, field: string): Json[] =>
    value === undefined || value === null ? [] : draft.objects(value, field);
  return [
    ...listOf(daemon?.['volumeMounts'], `${at}.containers[docker].volumeMounts`),
    ...listOf(dockerVolumeMounts, `${at}.dockerVolumeMounts`),
  ];
}

/** Adds the Docker daemon that a runner of this mode has by default. */
function addDocker(config: Fields, pod: Fields, draft: SetDraft, at: string): void {
  if (config['containerMode'] === 'kubernetes')
    return addJobPods(draft, `${at}.containerMode`, config['workVolumeClaimTemplate'] ?? undefined);
  addWorkFolder(config, draft);
  if (config['dockerEnabled'] === false && config['dockerdWithinRunnerContainer'] !== true) return;
  const listOf = (value: unknown, field: string): Json[] =>
    value === undefined || value === null ? [] : draft.objects(value, field);
  const own = (Array.isArray(pod['containers']) ? pod['containers'] : []).find(
    (container) => getPath(container, 'name') === 'docker',
  ) as Json | undefined;
  const {
    name: _name,
    env: ownEnv,
    volumeMounts: _ownMounts,
    args: ownArgs,
    ...container
  } = own ?? {};
  const [mtu, mirror, size] = [
    config['dockerMTU'],
    config['dockerRegistryMirror'],
    config['dockerVarRunVolumeSizeLimit'],
  ];
  addDockerDaemon(
    draft,
    config['dockerdWithinRunnerContainer'] === true
      ? `${at}.dockerdWithinRunnerContainer`
      : `${at}.dockerEnabled`,
    {
      container: {
        ...container,
        ...(pod['dockerdContainerResources'] === undefined
          ? {}
          : { resources: pod['dockerdContainerResources'] }),
      },
      args: [
        ...(typeof mtu === 'number' ? ['--mtu', String(mtu)] : []),
        ...(typeof mirror === 'string' && mirror !== '' ? [`--registry-mirror=${mirror}`] : []),
        ...(Array.isArray(ownArgs) ? ownArgs.map(toText) : []),
      ],
      env: [
        ...listOf(ownEnv, `${at}.containers[docker].env`),
        ...listOf(pod['dockerEnv'], `${at}.dockerEnv`),
      ].filter(({ name }) => name !== GRACEFUL_STOP),
      volumeMounts: daemonMountsOf(pod, draft, at),
      ...(size === undefined || size === null
        ? {}
        : { socketVolume: { medium: 'Memory', sizeLimit: size } }),
    },
  );
}

/** Adds the volume of the runner and its work directory, if ARC limits its size. */
function addWorkFolder(
  { volumeSizeLimit: sizeLimit, volumeStorageMedium: medium }: Fields,
  draft: SetDraft,
): void {
  if (
    (sizeLimit ?? medium) === undefined ||
    (sizeLimit ?? medium) === null ||
    toText(sizeLimit) === '0'
  )
    return;
  draft.mount({ name: 'work', mountPath: '/home/runner/_work' });
  draft.volume({
    name: 'work',
    emptyDir: { ...(sizeLimit ? { sizeLimit } : {}), ...(medium ? { medium } : {}) },
  });
}

/** Sets the cleanup timeout to the rest of the pod's grace period after the job's share. */
function restOfGrace(draft: SetDraft): void {
  const stop = draft.parts.template['stop'] as
    { drainTimeout?: string; signalTimeout?: string } | undefined;
  if (stop?.drainTimeout === undefined || stop.signalTimeout === undefined) return;
  const remaining =
    (parseDuration(stop.signalTimeout) ?? 0) - (parseDuration(stop.drainTimeout) ?? 0);
  const { signalTimeout: _all, ...rest } = stop;
  draft.put(
    'template',
    'stop',
    remaining > 0 ? { ...rest, signalTimeout: `${remaining / 1_000}s` } : rest,
  );
}
