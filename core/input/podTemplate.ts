/**
 * Validates the fields of a user's pod template on which Holdfast depends. The API server checks
 * the rest. Pure.
 */
import type { RunnerInput } from '../contract/index.ts';
import {
  isArcLabel,
  isReservedEnv,
  isReservedMetadata,
  isReservedPath,
  REGISTER_CONTAINER,
  CLAIM_VOLUME_PREFIX,
  RESERVED_VOLUME_PREFIX,
  RUNNER_CONTAINER,
  SHARED_DIR_CONTAINER,
  SUPERVISOR_CONTAINER,
  UPLOADER_CONTAINER,
} from '../domain/podTemplate.ts';
import { exceedsMaxDepth, MAX_DEPTH } from '../domain/maxDepth.ts';
import { isObject } from '../domain/isObject.ts';

/**
 * Fields of the pod's spec that are derived from the runner's own settings, with the alternatives.
 */
const RESERVED_SPEC: Readonly<Record<string, string>> = {
  activeDeadlineSeconds:
    'it starts before the image is pulled and kills without a goodbye; set timeouts.jobTimeout instead',
  terminationGracePeriodSeconds:
    'it is derived from stop.signalTimeout and stop.cleanupTimeout; set those instead',
};

/**
 * Returns one sentence for each error, which starts with the path inside the template. The list is
 * empty if there is none.
 */
export function podTemplateErrors({
  metadata = {},
  spec = {},
}: NonNullable<RunnerInput['pod']>): string[] {
  if (exceedsMaxDepth(spec))
    return [
      `spec: is nested more than ${MAX_DEPTH} levels deep, which no pod is; look for a list or an object within itself`,
    ];
  return [
    ...reservedMetadata('labels', metadata.labels),
    ...arcLabels(metadata.labels),
    ...reservedMetadata('annotations', metadata.annotations),
    ...specErrors(spec),
  ];
}

function arcLabels(labels: object = {}): string[] {
  return Object.keys(labels)
    .filter(isArcLabel)
    .map(
      (key) =>
        `metadata.labels: by ${key} actions-runner-controller would take the pod for its own; remove it`,
    );
}

function reservedMetadata(part: string, entries: object = {}): string[] {
  return Object.keys(entries)
    .filter(isReservedMetadata)
    .map((key) => `metadata.${part}: ${key} is set by Holdfast; remove it`);
}

function specErrors(spec: Readonly<Record<string, unknown>>): string[] {
  const errors: string[] = [];
  for (const [field, instead] of Object.entries(RESERVED_SPEC)) {
    if (spec[field] !== undefined) errors.push(`spec.${field}: ${instead}`);
  }
  if (spec['restartPolicy'] !== undefined && spec['restartPolicy'] !== 'Never') {
    errors.push(
      'spec.restartPolicy: must be Never, because a restarted runner would use its single-use registration again; remove it',
    );
  }
  const containers = named(spec, 'containers', errors);
  const initContainers = named(spec, 'initContainers', errors);
  for (const { name, path } of initContainers) {
    if (name === SUPERVISOR_CONTAINER)
      errors.push(`${path}: the name ${SUPERVISOR_CONTAINER} is Holdfast's own; rename it`);
    if (name === RUNNER_CONTAINER)
      errors.push(
        `${path}: the name ${RUNNER_CONTAINER} is kept for the container of the CI runner; rename it`,
      );
  }
  for (const { name, path } of [...containers, ...initContainers]) {
    if (name === UPLOADER_CONTAINER || name === SHARED_DIR_CONTAINER)
      errors.push(`${path}: the name ${name} is Holdfast's own; rename it`);
  }
  errors.push(...reservedMounts([...containers, ...initContainers]));
  errors.push(...duplicates([...containers, ...initContainers], 'container'));
  const volumes = named(spec, 'volumes', errors);
  errors.push(...duplicates(volumes, 'volume'), ...reservedVolumes(volumes));
  for (const { name, path } of containers) {
    if (name === REGISTER_CONTAINER)
      errors.push(
        `${path}: the name ${REGISTER_CONTAINER} is kept for the registration, which is an init container; move it there, or rename it`,
      );
  }
  const runner = containers.find(({ name }) => name === RUNNER_CONTAINER);
  const register = initContainers.find(({ name }) => name === REGISTER_CONTAINER);
  for (const each of [runner, register])
    if (each) errors.push(...runnerErrors(each.path, each.item));
  if (register?.item['restartPolicy'] !== undefined)
    errors.push(
      `${register.path}.restartPolicy: the runner starts when its registration has ended; remove it`,
    );
  return errors;
}

/**
 * Fields of the runner container's lifecycle that would use its grace period, or change its signal,
 * without the supervisor.
 */
const RESERVED_LIFECYCLE: Readonly<Record<string, string>> = {
  preStop:
    "its time is taken out of the pod's grace before anybody is told to stop; set stop.cleanupCommand instead, or let the command handle its signal",
  stopSignal:
    'what SIGTERM means is said by onTerm, and what the command gets by stop.signals; set those instead',
};

function runnerErrors(path: string, runner: Readonly<Record<string, unknown>>): string[] {
  const errors: string[] = [];
  const lifecycle = isObject(runner['lifecycle']) ? runner['lifecycle'] : {};
  for (const [field, instead] of Object.entries(RESERVED_LIFECYCLE)) {
    if (lifecycle[field] !== undefined) errors.push(`${path}.lifecycle.${field}: ${instead}`);
  }
  const message = runner['terminationMessagePath'];
  if (typeof message === 'string' && isReservedPath(message))
    errors.push(
      `${path}.terminationMessagePath: ${message} is in a folder of Holdfast's own; choose another, or remove it`,
    );
  const env = named(runner, 'env', errors, `${path}.`);
  errors.push(...duplicates(env, 'variable'));
  for (const { name, path: at } of env) {
    if (isReservedEnv(name)) errors.push(`${at}: ${name} is set by Holdfast; remove it`);
  }
  const mounts = named(runner, 'volumeMounts', errors, `${path}.`);
  errors.push(...reservedVolumes(mounts));
  for (const { item, path: at } of mounts) {
    if (typeof item['mountPath'] === 'string' && isReservedPath(item['mountPath']))
      errors.push(`${at}: ${item['mountPath']} is a folder of Holdfast's own; mount it elsewhere`);
  }
  return errors;
}

/**
 * Checks mounts of Holdfast's volumes. Other containers of the pod may mount only the runner's own
 * claims.
 */
function reservedMounts(containers: readonly Named[]): string[] {
  return containers
    .filter(({ name }) => name !== RUNNER_CONTAINER && name !== REGISTER_CONTAINER)
    .flatMap(({ path, item }) => {
      const errors: string[] = [];
      const mounts = named(item, 'volumeMounts', errors, `${path}.`).filter(
        ({ name }) => !name.startsWith(CLAIM_VOLUME_PREFIX),
      );
      return [...errors, ...reservedVolumes(mounts)];
    });
}

function reservedVolumes(items: readonly Named[]): string[] {
  return items
    .filter(({ name }) => name.startsWith(RESERVED_VOLUME_PREFIX))
    .map(
      ({ name, path }) =>
        `${path}: volumes called ${RESERVED_VOLUME_PREFIX}* are Holdfast's own; rename ${name}`,
    );
}

interface Named {
  readonly name: string;
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
}

/**
 * Returns the items of a list whose elements have names. Errors of its shape are added to `errors`.
 */
function named(
  owner: Readonly<Record<string, unknown>>,
  field: string,
  errors: string[],
  prefix = 'spec.',
): Named[] {
  const list = owner[field];
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) {
    errors.push(`${prefix}${field}: must be a list`);
    return [];
  }
  return list.flatMap((item: unknown, index) => {
    const path = `${prefix}${field}[${index}]`;
    if (isObject(item) && typeof item['name'] === 'string' && item['name'] !== '')
      return [{ name: item['name'], path, item }];
    errors.push(`${path}: needs a name`);
    return [];
  });
}

function duplicates(items: readonly Named[], what: string): string[] {
  const seen = new Set<string>();
  const errors: string[] = [];
  for (const { name, path } of items) {
    if (seen.has(name)) errors.push(`${path}: a second ${what} called ${name}`);
    seen.add(name);
  }
  return errors;
}
