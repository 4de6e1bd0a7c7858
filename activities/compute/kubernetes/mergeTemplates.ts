/** Merges pod templates as a strategic merge patch of Kubernetes does. Pure. */
import { isObject } from '../../../core/domain/isObject.ts';

/**
 * Lists that Kubernetes merges by a key ("patchMergeKey" in its API description). All other lists
 * are replaced as a whole.
 */
export const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  env: 'name',
  imagePullSecrets: 'name',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  hostAliases: 'ip',
};

/**
 * Merges `over` into `base`: objects field by field, lists with a merge key item by item.
 * Everything else is replaced.
 */
export function mergeTemplates(base: unknown, over: unknown, field = ''): unknown {
  if (over === undefined) return base;
  const key = MERGE_KEYS[field];
  if (key && Array.isArray(base) && Array.isArray(over)) {
    const items = new Map<unknown, unknown>(
      base.map((item: Record<string, unknown>) => [item[key], item]),
    );
    for (const item of over as Record<string, unknown>[])
      items.set(item[key], mergeTemplates(items.get(item[key]), item));
    return [...items.values()];
  }
  if (!isObject(base) || !isObject(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over))
    merged[name] = mergeTemplates(base[name], value, name);
  return merged;
}
