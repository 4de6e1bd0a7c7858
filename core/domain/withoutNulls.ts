import { isObject } from './isObject.ts';

/**
 * Returns a copy without fields that are `null`. The API server reads such a field of a manifest as
 * absent. Items of lists stay.
 */
export function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutNulls(item)) as T;
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== null)
      .map(([name, field]) => [name, withoutNulls(field)]),
  ) as T;
}
