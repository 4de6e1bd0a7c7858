/** Finds what a request changes of the worker's own pod template. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../../../core/domain/isObject.ts';
import { RUNNER_CONTAINER } from '../../../../core/domain/podTemplate.ts';
import type { PodRequest, PodTemplate } from '../../../../core/domain/pod.ts';
import { omitUndefined } from '../../../../core/domain/omitUndefined.ts';
import { MERGE_KEYS } from '../mergeTemplates.ts';
import type { PodField } from './allowedFields.ts';

/** Lists whose other items belong to the worker as a whole: they have rights of their own. */
const CLOSED_LISTS: ReadonlySet<string> = new Set(['containers', 'initContainers', 'volumes']);

/** Returns the fields of the worker's template for which the request has other values. */
export function overriddenFields(
  worker: PodTemplate | undefined,
  { template, image, command, args, env }: Omit<PodRequest, 'identity'>,
): PodField[] {
  if (worker === undefined) return [];
  const runner = omitUndefined({
    image,
    command,
    args,
    env: env && Object.entries(env).map(([name, value]) => ({ name, value })),
  });
  const own = { spec: { containers: [{ name: RUNNER_CONTAINER, ...runner }] } };
  const found = [template ?? {}, own].flatMap((asked) => [
    ...changes(worker.metadata, (asked as PodTemplate).metadata, at('metadata')),
    ...changes(worker.spec, asked.spec, at('')),
  ]);
  return [...new Map(found.map((each) => [each.path, each])).values()];
}

const at = (path: string): PodField & { readonly list: string } => ({
  path,
  field: path,
  list: '',
});

function changes(
  base: unknown,
  over: unknown,
  place: PodField & { readonly list: string },
): PodField[] {
  if (base === undefined || base === null || over === undefined || over === null) return [];
  if (isDeepStrictEqual(base, over)) return [];
  const { path, field, list } = place;
  const key = MERGE_KEYS[list];
  if (key !== undefined && Array.isArray(base) && Array.isArray(over))
    return over.flatMap((item: Record<string, unknown>) => {
      const same = base.find((each: Record<string, unknown>) => each[key] === item[key]) as unknown;
      const here = { path: `${path}[${String(item[key])}]`, field, list: '' };
      if (!CLOSED_LISTS.has(list) || item[key] === RUNNER_CONTAINER)
        return changes(same, item, here);
      return same === undefined || isDeepStrictEqual(same, item) ? [] : [here];
    });
  if (!isObject(base) || !isObject(over)) return [{ path, field }];
  return Object.entries(over).flatMap(([name, value]) =>
    changes(base[name], value, {
      path: path === '' ? name : `${path}.${name}`,
      field: (field === '' ? name : `${field}.${name}`).replace(/^initContainers\b/, 'containers'),
      list: name,
    }),
  );
}
