/**
 * Maximum nesting of lists and objects. Those of Kubernetes have about twenty levels. A value that
 * is often converted to JSON must not exhaust the stack.
 */
export const MAX_DEPTH = 100;

/**
 * Returns whether a value is nested more than {@link MAX_DEPTH} levels deep. It works level by
 * level, because recursion could exhaust the stack too.
 */
export function exceedsMaxDepth(value: unknown): boolean {
  let level = [value];
  for (let remaining = MAX_DEPTH; level.length > 0; remaining--) {
    if (remaining < 0) return true;
    level = level.flatMap((each) =>
      typeof each === 'object' && each !== null ? Object.values(each) : [],
    );
  }
  return false;
}
