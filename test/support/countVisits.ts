/** Walks of their own over an array, with the entries that each visits at the most. */
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
/** What `for … of`, spreading, `Array.from`, `new Map` and `new Set` go by. */
const ITERATORS = [new Map().entries(), new Set().values(), [].values()].map(
  (iterator) => Object.getPrototypeOf(iterator) as { next: (this: unknown) => unknown },
);

/**
 * How many entries of arrays, Maps and Sets were visited: work as a number, which is the same on every machine. What sorting takes beyond one visit each is
 * not in it.
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
