/** The same fields; those that may be `undefined` become optional. */
export type OmitUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * Returns the object without fields that are `undefined`. An optional field is either absent or has
 * a value (`exactOptionalPropertyTypes`), because histories and comparisons must not contain two
 * forms of the same value.
 */
export function omitUndefined<T extends object>(fields: T): OmitUndefined<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as OmitUndefined<T>;
}
