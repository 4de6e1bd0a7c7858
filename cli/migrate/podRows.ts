/** Converts a pod template and its runner container. Pure. */
import {
  isArcLabel,
  isReservedEnv,
  isReservedMetadata,
  RUNNER_CONTAINER,
} from '../../core/domain/podTemplate.ts';
import { isObject } from '../../core/domain/isObject.ts';
import {
  convertFields,
  nested,
  ignored,
  copyListTo,
  copyTo,
  unsupported,
  type FieldRow,
  type FieldRows,
} from './fieldRows.ts';
import { quoted, type Json, type SetDraft } from './setDraft.ts';

/**
 * Part of a pod's grace period that Holdfast reserves for cleanup: the default of
 * `stop.cleanupTimeout`.
 */
const CLEANUP_SECONDS = 5;
/** Pattern of GitHub's own image with the newest version. */
const NEWEST_IMAGE = /^ghcr\.io\/actions\/actions-runner(:latest)?$/;
const RUN = '/home/runner/run.sh';

const metadataRow =
  (part: 'labels' | 'annotations'): FieldRow =>
  (value, draft, field) => {
    if (!isObject(value)) return draft.addError(field, 'must be an object');
    for (const key of Object.keys(value).filter(isReservedMetadata))
      draft.note(field, `${quoted(key)} is left out: Holdfast sets it itself`, 'metadata', part);
    const isArcs = (key: string): boolean => part === 'labels' && isArcLabel(key);
    for (const key of Object.keys(value).filter(isArcs))
      draft.note(
        field,
        `${quoted(key)} is left out: by it ARC would take the pod for its own`,
        'metadata',
        part,
      );
    draft.put(
      'metadata',
      part,
      Object.fromEntries(
        Object.entries(value).filter(([key]) => !isReservedMetadata(key) && !isArcs(key)),
      ),
    );
  };

/** Rows of the metadata of a pod template. */
export const POD_METADATA_ROWS: FieldRows = {
  labels: metadataRow('labels'),
  annotations: metadataRow('annotations'),
  creationTimestamp: ignored,
};

const OTHER_METADATA = unsupported(
  'left out: a pod of Holdfast takes labels and annotations from its template, nothing else',
  'metadata',
);

/** Row of `env`, without the variables that Holdfast sets. */
export const envRow: FieldRow = (value, draft, field) => {
  for (const variable of draft.objects(value, field)) {
    if (typeof variable['name'] === 'string' && isReservedEnv(variable['name']))
      draft.note(
        field,
        `${quoted(variable['name'])} is left out: Holdfast sets it itself`,
        'runner',
        'env',
      );
    else draft.runnerField('env').push(variable);
  }
};

const LIFECYCLE_ROWS: FieldRows = {
  preStop: unsupported(
    'left out: it would use the grace period before any process is signaled. stop.cleanupCommand runs after the end, stop.signals is a sequence of signals',
    'template',
    'stop',
  ),
  stopSignal: unsupported(
    'left out: stop.signals sets the signals of the runner',
    'template',
    'stop',
  ),
};

/** Rows of the runner container. */
export const RUNNER_CONTAINER_ROWS: FieldRows = {
  name: ignored,
  image: copyTo('template', 'image'),
  command: copyListTo('template', 'command'),
  args: copyListTo('template', 'args'),
  env: envRow,
  volumeMounts: (value, draft, field) =>
    void draft.runnerField('volumeMounts').push(...draft.objects(value, field)),
  lifecycle: nested(LIFECYCLE_ROWS, (value, draft, _field, key) =>
    draft.put('runner', 'lifecycle', {
      ...(draft.parts.runner['lifecycle'] as Json | undefined),
      [key]: value,
    }),
  ),
  startupProbe: unsupported(
    "left out: Holdfast's own probes show when the runner is online",
    'runner',
  ),
  readinessProbe: unsupported(
    "left out: Holdfast's own probes show when the runner is busy",
    'runner',
  ),
};

/** Returns a row that copies a field of the container or the pod unchanged. */
export const sameField =
  (part: 'runner' | 'spec'): FieldRow =>
  (value, draft, _field, key) =>
    draft.put(part, key, value);

/** Converts the container `runner` and the other containers. */
const containersRow: FieldRow = (value, draft, field) => {
  for (const [index, container] of draft.objects(value, field).entries()) {
    if (container['name'] === RUNNER_CONTAINER)
      convertFields(
        container,
        RUNNER_CONTAINER_ROWS,
        `${field}[${index}]`,
        draft,
        sameField('runner'),
      );
    else draft.containers.push(container);
  }
};

const gracePeriodRow: FieldRow = (value, draft, field) => {
  if (typeof value !== 'number') return draft.addError(field, 'must be a number of seconds');
  if (value <= CLEANUP_SECONDS)
    return draft.note(
      field,
      `${value} s, left out: the job's grace stays at its default, 10 s, and ${CLEANUP_SECONDS} s for cleaning up`,
      'template',
      'stop',
    );
  draft.put('template', 'stop', {
    ...(draft.parts.template['stop'] as Json | undefined),
    signalTimeout: `${value - CLEANUP_SECONDS}s`,
  });
  draft.note(
    field,
    `${value} s, of which ${CLEANUP_SECONDS} s are stop.cleanupTimeout, for cleaning up after the job`,
    'template',
    'stop',
  );
};

/**
 * Row of `serviceAccountName`. It keeps the token mounted, and notes that the pod policy must allow
 * the account.
 */
export const serviceAccountRow: FieldRow = (value, draft, field) => {
  draft.put('spec', 'serviceAccountName', value);
  draft.note(
    field,
    `the worker's pod policy has to allow it (serviceAccounts: [${quoted(value)}]), and pods run in the worker's namespace: it has to be there. Jobs get its token; leave automountServiceAccountToken out if none of them needs it`,
    'spec',
    'serviceAccountName',
  );
  if (draft.parts.spec['automountServiceAccountToken'] === undefined)
    draft.put('spec', 'automountServiceAccountToken', true);
};

const WINDOWS =
  'Holdfast has no runners on Windows: its pods, and what it adds to them, are for Linux. Keep this one with ARC, or choose Linux nodes';
const OS_LABELS = ['kubernetes.io/os', 'beta.kubernetes.io/os'];

const nodeSelectorRow: FieldRow = (value, draft, field) => {
  draft.put('spec', 'nodeSelector', value);
  if (isObject(value) && OS_LABELS.some((label) => value[label] === 'windows'))
    draft.needsDecision(field, WINDOWS, 'spec', 'nodeSelector');
};

const osRow: FieldRow = (value, draft, field) => {
  if (isObject(value) && value['name'] === 'windows')
    return draft.needsDecision(field, WINDOWS, 'spec');
  draft.put('spec', 'os', value);
};

/** Rows of a pod spec. */
export const POD_SPEC_ROWS: FieldRows = {
  containers: containersRow,
  initContainers: (value, draft, field) =>
    void draft.initContainers.push(...draft.objects(value, field)),
  volumes: (value, draft, field) => void draft.volumes.push(...draft.objects(value, field)),
  restartPolicy: (value, draft, field) =>
    value === 'Never'
      ? undefined
      : draft.note(
          field,
          'left out: a registration is good for one start, so it is always Never',
          'spec',
        ),
  terminationGracePeriodSeconds: gracePeriodRow,
  activeDeadlineSeconds: unsupported(
    'left out: it includes the image pull, and kills the job. timeouts.jobTimeout limits the job instead, timeouts.podPending the time before it',
    'template',
    'timeouts',
  ),
  serviceAccountName: serviceAccountRow,
  nodeSelector: nodeSelectorRow,
  os: osRow,
  ephemeralContainers: unsupported(
    'left out: the API server takes none when a pod is made. Make it a container of the pod',
    'spec',
  ),
};

/** All other fields of a pod spec are copied. The API server validates them. */
const podSpecRow: FieldRow = nested(POD_SPEC_ROWS, sameField('spec'));
/** Row of the metadata of a pod template. Only labels and annotations are kept. */
export const podMetadataRow: FieldRow = nested(POD_METADATA_ROWS, OTHER_METADATA);
/** Rows of a pod template. */
export const POD_TEMPLATE_ROWS: FieldRows = { metadata: podMetadataRow, spec: podSpecRow };

/**
 * Removes GitHub's image without a version, and the usual start command, because the worker has
 * them as defaults.
 */
export function omitDefaultImage(draft: SetDraft): void {
  const { template } = draft.parts;
  const { image, command, args } = template;
  if (typeof image !== 'string') return;
  if (!NEWEST_IMAGE.test(image)) {
    if (command === undefined)
      draft.note(
        'image',
        `it brings its own start. Where the worker has HOLDFAST_SUPERVISOR_IMAGE, give command as well: ["${RUN}"] in an image built on GitHub's`,
        'template',
        'image',
      );
    return;
  }
  const isUsual =
    command === undefined || JSON.stringify([command, args]) === JSON.stringify([[RUN], undefined]);
  // The daemon's container copies files of the image, which must have the runner's version.
  if (!isUsual || draft.initContainers.some((container) => container['image'] === image)) return;
  delete template['image'];
  delete template['command'];
  draft.note(
    'image',
    `${quoted(image)} is left out: the worker's own is GitHub's, of a version that is pinned (HOLDFAST_RUNNER_IMAGE)`,
    'template',
  );
}
