/** Methods that visit entries of an array, with the maximum number of entries that each visits. */
const WALKS = [
  'concat',
  'every',
  'fill',
  'filter',
  'find',
  'findIndex',
  'findLast',
  'flat',
  'flatMap',
  'forEach',
  'includes',
  'indexOf',
  'join',
  'map',
  'reduce',
  'slice',
  'some',
  'sort',
  'splice',
  'toReversed',
  'toSorted',
  'toSpliced',
] as const;
/** The iterators of `for ... of`, spreading, `Array.from`, `new Map` and `new Set`. */
const ITERATORS = [new Map().entries(), new Set().values(), [].values()].map(
  (iterator) => Object.getPrototypeOf(iterator) as { next: (this: unknown) => unknown },
);

/**
 * Counts the visited entries of arrays, Maps and Sets: a measure of work that is the same on every
 * machine. Sorting counts one visit for each entry.
 */
export function countVisits(run: () => void): number {
  let visits = 0;
  const undo: (() => void)[] = [];
  const replace = (
    target: object,
    name: string,
    by: (
      original: (...args: unknown[]) => unknown,
    ) => (this: unknown, ...args: unknown[]) => unknown,
  ): void => {
    const descriptor = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor;
    Object.defineProperty(target, name, {
      ...descriptor,
      value: by(descriptor.value as (...args: unknown[]) => unknown),
    });
    undo.push(() => Object.defineProperty(target, name, descriptor));
  };
  for (const iterator of ITERATORS) {
    replace(
      iterator,
      'next',
      (original) =>
        function next(this: unknown) {
          visits++;
          return original.call(this);
        },
    );
  }
  for (const name of WALKS) {
    replace(
      Array.prototype,
      name,
      (original) =>
        function walk(this: unknown, ...args: unknown[]) {
          visits += (this as unknown[]).length;
          return original.apply(this, args);
        },
    );
  }
  try {
    run();
  } finally {
    for (const restore of undo) restore();
  }
  return visits;
}
