/** Levels of lists and objects. Kubernetes' own are some twenty deep; what is written as JSON again and again is not to use up the stack. */
export const MAX_DEPTH = 100;

/** Is it nested more than {@link MAX_DEPTH} levels deep? Level by level: its own stack has no bound either. */
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
