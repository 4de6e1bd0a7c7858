/**
 * Validates the fields of a user's pod template on which Holdfast depends. The API server checks
 * the rest. Pure.
 */
import type { InputError, InputErrorCode, RunnerInput } from '../contract/index.ts';
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
    'must not be set, because it starts before the image is pulled and gives the runner no time to end; set timeouts.jobTimeout instead',
  terminationGracePeriodSeconds:
    'must not be set, because it is derived from stop.signalTimeout and stop.cleanupTimeout; set those instead',
};

/**
 * Returns all errors of a runner's template. Their fields are paths inside the template.
 */
export function podTemplateErrors(template: NonNullable<RunnerInput['pod']>): InputError[] {
  const errors = workerTemplateErrors(template);
  const { initContainers } = template.spec ?? {};
  // Its image and command get a token that is valid for the whole scope.
  return [
    ...errors,
    ...reservedNames(
      Array.isArray(initContainers) ? named(template.spec ?? {}, 'initContainers', []) : [],
      {
        [REGISTER_CONTAINER]:
          "which registers static runners; only the worker's own template (HOLDFAST_POD_TEMPLATE_FILE) may change it",
      },
    ),
  ];
}

/** Returns all errors of the worker's own template, which may change the container that registers. */
export function workerTemplateErrors({
  metadata = {},
  spec = {},
}: NonNullable<RunnerInput['pod']>): InputError[] {
  if (exceedsMaxDepth(spec))
    return [
      errorOf(
        'invalid',
        'spec',
        `is nested more than ${MAX_DEPTH} levels deep, deeper than any pod; check for a list or an object that contains itself`,
      ),
    ];
  return [
    ...reservedMetadata('labels', metadata.labels),
    ...arcLabels(metadata.labels),
    ...reservedMetadata('annotations', metadata.annotations),
    ...specErrors(spec),
  ];
}

const errorOf = (code: InputErrorCode, field: string, message: string): InputError => ({
  code,
  field,
  message,
});

function arcLabels(labels: object = {}): InputError[] {
  return Object.keys(labels)
    .filter(isArcLabel)
    .map((key) =>
      errorOf(
        'reserved',
        'metadata.labels',
        `must not have ${key}, by which actions-runner-controller would take the pod for its own; remove it`,
      ),
    );
}

function reservedMetadata(part: string, entries: object = {}): InputError[] {
  return Object.keys(entries)
    .filter(isReservedMetadata)
    .map((key) =>
      errorOf(
        'reserved',
        `metadata.${part}`,
        `must not have ${key}, which is set by Holdfast; remove it`,
      ),
    );
}

const OWN = "which is Holdfast's own; rename it";
/** Names that no container may have, with the reasons. */
const RESERVED_CONTAINERS: Readonly<Record<string, string>> = {
  [UPLOADER_CONTAINER]: OWN,
  [SHARED_DIR_CONTAINER]: OWN,
  [REGISTER_CONTAINER]:
    'which is reserved for the registration, an init container; move it there, or rename it',
};
/** Names that no init container may have, with the reasons. */
const RESERVED_INIT_CONTAINERS: Readonly<Record<string, string>> = {
  [UPLOADER_CONTAINER]: OWN,
  [SHARED_DIR_CONTAINER]: OWN,
  [SUPERVISOR_CONTAINER]: OWN,
  [RUNNER_CONTAINER]: 'which is reserved for the container of the CI runner; rename it',
};

function reservedNames(
  containers: readonly Named[],
  reserved: Readonly<Record<string, string>>,
): InputError[] {
  return containers.flatMap(({ name, path }) => {
    const reason = Object.hasOwn(reserved, name) ? reserved[name] : undefined;
    return reason === undefined
      ? []
      : [errorOf('reserved', path, `has the name ${name}, ${reason}`)];
  });
}

function specErrors(spec: Readonly<Record<string, unknown>>): InputError[] {
  const errors: InputError[] = [];
  for (const [field, instead] of Object.entries(RESERVED_SPEC)) {
    if (spec[field] !== undefined) errors.push(errorOf('reserved', `spec.${field}`, instead));
  }
  if (spec['restartPolicy'] !== undefined && spec['restartPolicy'] !== 'Never') {
    errors.push(
      errorOf(
        'invalid',
        'spec.restartPolicy',
        'must be Never, because a restarted runner would use its single-use registration again; remove it',
      ),
    );
  }
  const containers = named(spec, 'containers', errors);
  const initContainers = named(spec, 'initContainers', errors);
  errors.push(...reservedNames(containers, RESERVED_CONTAINERS));
  errors.push(...reservedNames(initContainers, RESERVED_INIT_CONTAINERS));
  errors.push(...reservedMounts([...containers, ...initContainers]));
  errors.push(...duplicates([...containers, ...initContainers], 'container'));
  const volumes = named(spec, 'volumes', errors);
  errors.push(...duplicates(volumes, 'volume'), ...reservedVolumes(volumes));
  const runner = containers.find(({ name }) => name === RUNNER_CONTAINER);
  const register = initContainers.find(({ name }) => name === REGISTER_CONTAINER);
  for (const each of [runner, register])
    if (each) errors.push(...runnerErrors(each.path, each.item));
  if (register?.item['restartPolicy'] !== undefined)
    errors.push(
      errorOf(
        'not_applicable',
        `${register.path}.restartPolicy`,
        'must not be set, because the runner starts when its registration has ended; remove it',
      ),
    );
  return errors;
}

/**
 * Fields of the runner container's lifecycle that would use its grace period, or change its signal,
 * without the supervisor.
 */
const RESERVED_LIFECYCLE: Readonly<Record<string, string>> = {
  preStop:
    "must not be set, because its time is taken from the pod's grace period before any process gets a signal; set stop.cleanupCommand instead, or let the command handle its signal",
  stopSignal:
    'must not be set, because onTerm and stop.signals decide which signals the command receives; set those instead',
};

function runnerErrors(path: string, runner: Readonly<Record<string, unknown>>): InputError[] {
  const errors: InputError[] = [];
  const lifecycle = isObject(runner['lifecycle']) ? runner['lifecycle'] : {};
  for (const [field, instead] of Object.entries(RESERVED_LIFECYCLE)) {
    if (lifecycle[field] !== undefined)
      errors.push(errorOf('reserved', `${path}.lifecycle.${field}`, instead));
  }
  const message = runner['terminationMessagePath'];
  if (typeof message === 'string' && isReservedPath(message))
    errors.push(
      errorOf(
        'reserved',
        `${path}.terminationMessagePath`,
        `is ${message}, in a folder of Holdfast's own; choose another, or remove it`,
      ),
    );
  const env = named(runner, 'env', errors, `${path}.`);
  errors.push(...duplicates(env, 'variable'));
  for (const { name, path: at } of env) {
    if (isReservedEnv(name))
      errors.push(
        errorOf('reserved', at, `has the name ${name}, which is set by Holdfast; remove it`),
      );
  }
  const mounts = named(runner, 'volumeMounts', errors, `${path}.`);
  errors.push(...reservedVolumes(mounts));
  for (const { item, path: at } of mounts) {
    if (typeof item['mountPath'] === 'string' && isReservedPath(item['mountPath']))
      errors.push(
        errorOf(
          'reserved',
          at,
          `mounts ${item['mountPath']}, which is a folder of Holdfast's own; mount it elsewhere`,
        ),
      );
  }
  return errors;
}

/**
 * Checks mounts of Holdfast's volumes. Other containers of the pod may mount only the runner's own
 * claims.
 */
function reservedMounts(containers: readonly Named[]): InputError[] {
  return containers
    .filter(({ name }) => name !== RUNNER_CONTAINER && name !== REGISTER_CONTAINER)
    .flatMap(({ path, item }) => {
      const errors: InputError[] = [];
      const mounts = named(item, 'volumeMounts', errors, `${path}.`).filter(
        ({ name }) => !name.startsWith(CLAIM_VOLUME_PREFIX),
      );
      return [...errors, ...reservedVolumes(mounts)];
    });
}

function reservedVolumes(items: readonly Named[]): InputError[] {
  return items
    .filter(({ name }) => name.startsWith(RESERVED_VOLUME_PREFIX))
    .map(({ name, path }) =>
      errorOf(
        'reserved',
        path,
        `is called ${name}, and volumes called ${RESERVED_VOLUME_PREFIX}* are Holdfast's own; rename it`,
      ),
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
  errors: InputError[],
  prefix = 'spec.',
): Named[] {
  const list = owner[field];
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) {
    errors.push(errorOf('invalid', `${prefix}${field}`, 'must be a list'));
    return [];
  }
  return list.flatMap((item: unknown, index) => {
    const path = `${prefix}${field}.${index}`;
    if (isObject(item) && typeof item['name'] === 'string' && item['name'] !== '')
      return [{ name: item['name'], path, item }];
    errors.push(errorOf('required', path, 'needs a name'));
    return [];
  });
}

function duplicates(items: readonly Named[], what: string): InputError[] {
  const seen = new Set<string>();
  const errors: InputError[] = [];
  for (const { name, path } of items) {
    if (seen.has(name)) errors.push(errorOf('duplicate', path, `repeats the ${what} ${name}`));
    seen.add(name);
  }
  return errors;
}
