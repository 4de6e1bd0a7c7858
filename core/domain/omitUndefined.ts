/** The same fields, those that may be `undefined` optional. */
export type OmitUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * The object without its fields that are `undefined`. An optional field of ours is absent or has a value
 * (`exactOptionalPropertyTypes`): what goes into a history or a comparison must not say the same in two ways.
 */
export function omitUndefined<T extends object>(fields: T): OmitUndefined<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as OmitUndefined<T>;
}
