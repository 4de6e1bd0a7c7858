/**
 * What a user's pod template may say. Pure, and free of any client: the workflow refuses a bad template in its first step, before
 * anything was created.
 */
import type { PodTemplate } from './pod.ts';

/** The container that runs the CI runner. A template's container of this name is merged under what Holdfast sets. */
export const RUNNER_CONTAINER = 'runner';
/** The init container that copies the supervisor in. */
export const SUPERVISOR_CONTAINER = 'holdfast-supervisor';
/** Labels and annotations under this prefix belong to Holdfast. */
export const RESERVED_METADATA_PREFIX = 'holdfast.dev/';
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
/** Volumes under this prefix belong to Holdfast. */
export const RESERVED_VOLUME_PREFIX = 'holdfast-';

/** Variables that carry the registration; the official runner reads each of its command-line options from ACTIONS_RUNNER_INPUT_*. */
const RESERVED_ENV = new Set([
  'RUNNER_NAME', 'RUNNER_TOKEN', 'RUNNER_URL', 'RUNNER_JITCONFIG', 'RUNNER_SCOPE', 'RUNNER_LABELS', 'RUNNER_GROUP', 'RUNNER_EPHEMERAL',
]);
const RESERVED_ENV_PREFIXES = ['ACTIONS_RUNNER_INPUT_', 'HOLDFAST_'];

/** Fields of the pod's spec that follow from the runner's own settings, with what to write instead. */
const RESERVED_SPEC: Readonly<Record<string, string>> = {
  activeDeadlineSeconds: 'it starts before the image is pulled and kills without a goodbye; set timeouts.jobTimeout instead',
  terminationGracePeriodSeconds: 'it is derived from stop.signalTimeout and stop.cleanupTimeout; set those instead',
};

/** True for a variable of the runner container that Holdfast sets itself. */
export function isReservedEnv(name: string): boolean {
  return RESERVED_ENV.has(name) || RESERVED_ENV_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** Folders of the runner container that Holdfast mounts. */
const RESERVED_PATHS = ['/holdfast', '/etc/holdfast'];

/** True for a mount path in Holdfast's own folders, or over them. */
export function isReservedPath(path: string): boolean {
  const clean = path.replace(/\/+$/, '');
  return RESERVED_PATHS.some((own) => clean === own || clean.startsWith(`${own}/`));
}

/** True for a label or annotation that Holdfast sets itself. */
export function isReservedMetadata(key: string): boolean {
  return key === MANAGED_BY_LABEL || key.startsWith(RESERVED_METADATA_PREFIX);
}

/**
 * Checks the parts of a template that Holdfast depends on; the API server checks the rest.
 * @returns one sentence per fault, each beginning with the path inside the template; empty when there is none
 */
export function validatePodTemplate(template: PodTemplate): string[] {
  if (!isObject(template)) return ['must be an object with metadata and spec'];
  const errors = unknownKeys('', template, ['metadata', 'spec']);
  if (template.metadata !== undefined) errors.push(...metadataErrors(template.metadata));
  if (template.spec !== undefined) errors.push(...specErrors(template.spec));
  return errors;
}

function metadataErrors(metadata: unknown): string[] {
  if (!isObject(metadata)) return ['metadata: must be an object'];
  const errors = unknownKeys('metadata.', metadata, ['labels', 'annotations']);
  for (const part of ['labels', 'annotations']) {
    const entries = metadata[part];
    if (entries === undefined) continue;
    if (!isObject(entries)) {
      errors.push(`metadata.${part}: must be an object of strings`);
      continue;
    }
    for (const [key, value] of Object.entries(entries)) {
      if (isReservedMetadata(key)) errors.push(`metadata.${part}: ${key} is set by Holdfast; remove it`);
      else if (typeof value !== 'string') errors.push(`metadata.${part}: ${key} must be a string; put it in quotes`);
    }
  }
  return errors;
}

function specErrors(spec: unknown): string[] {
  if (!isObject(spec)) return ['spec: must be an object'];
  const errors: string[] = [];
  for (const [field, instead] of Object.entries(RESERVED_SPEC)) {
    if (spec[field] !== undefined) errors.push(`spec.${field}: ${instead}`);
  }
  if (spec['restartPolicy'] !== undefined && spec['restartPolicy'] !== 'Never') {
    errors.push('spec.restartPolicy: must be Never, because a restarted runner would use its single-use registration again; remove it');
  }
  const containers = named(spec, 'containers', errors);
  const initContainers = named(spec, 'initContainers', errors);
  for (const { name, path } of initContainers) {
    if (name === SUPERVISOR_CONTAINER) errors.push(`${path}: the name ${SUPERVISOR_CONTAINER} is Holdfast's own; rename it`);
    if (name === RUNNER_CONTAINER) errors.push(`${path}: the name ${RUNNER_CONTAINER} is kept for the container of the CI runner; rename it`);
  }
  errors.push(...duplicates([...containers, ...initContainers], 'container'));
  const volumes = named(spec, 'volumes', errors);
  errors.push(...duplicates(volumes, 'volume'), ...reservedVolumes(volumes));
  const runner = containers.find((container) => container.name === RUNNER_CONTAINER);
  if (runner) errors.push(...runnerErrors(runner.path, runner.item));
  return errors;
}

function runnerErrors(path: string, runner: Readonly<Record<string, unknown>>): string[] {
  const errors: string[] = [];
  const env = named(runner, 'env', errors, `${path}.`);
  errors.push(...duplicates(env, 'variable'));
  for (const { name, path: at } of env) {
    if (isReservedEnv(name)) errors.push(`${at}: ${name} is set by Holdfast; remove it`);
  }
  const mounts = named(runner, 'volumeMounts', errors, `${path}.`);
  errors.push(...reservedVolumes(mounts));
  for (const { item, path: at } of mounts) {
    if (typeof item['mountPath'] === 'string' && isReservedPath(item['mountPath'])) errors.push(`${at}: ${item['mountPath']} is a folder of Holdfast's own; mount it elsewhere`);
  }
  return errors;
}

function reservedVolumes(items: readonly Named[]): string[] {
  return items
    .filter(({ name }) => name.startsWith(RESERVED_VOLUME_PREFIX))
    .map(({ name, path }) => `${path}: volumes called ${RESERVED_VOLUME_PREFIX}* are Holdfast's own; rename ${name}`);
}

interface Named {
  readonly name: string;
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
}

/** The items of a list whose elements carry a name; faults of its shape go to `errors`. */
function named(owner: Readonly<Record<string, unknown>>, field: string, errors: string[], prefix = 'spec.'): Named[] {
  const list = owner[field];
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) {
    errors.push(`${prefix}${field}: must be a list`);
    return [];
  }
  return list.flatMap((item: unknown, index) => {
    const path = `${prefix}${field}[${index}]`;
    if (isObject(item) && typeof item['name'] === 'string' && item['name'] !== '') return [{ name: item['name'], path, item }];
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

function unknownKeys(prefix: string, object: object, known: readonly string[]): string[] {
  return Object.keys(object)
    .filter((key) => !known.includes(key))
    .map((key) => `${prefix}${key}: unknown field; a template has ${known.join(' and ')} here`);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
