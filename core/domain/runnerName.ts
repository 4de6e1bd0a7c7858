/** Maximum length of a runner's name (characters): CI servers refuse longer ones. */
const MAX_RUNNER_NAME = 64;

/** The hash in a name that {@link runnerName} has made; `undefined`: it did not make this one. Pure. */
export function parseRunnerNameHash(name: string): string | undefined {
  return /-([0-9a-f]{10})(?:-r\d+)?$/.exec(name)?.[1];
}

/**
 * Workflow id of the runner that may have this name at the CI server, if its workflow was started as `runner-<name>`, as sets and `holdfast` do. The name
 * is anybody's: whether there is such a runner, and whether the name is its own, is for that workflow to say. Pure.
 * @returns `undefined`: none of ours has such a name
 */
export function workflowIdFromRunnerName(name: string): string | undefined {
  const [, base] =
    /^([A-Za-z0-9][A-Za-z0-9_.-]{0,49})-[0-9a-f]{10}(?:-r\d{1,9})?$/.exec(name) ?? [];
  return base === undefined ? undefined : `runner-${base}`;
}

/**
 * Name of the runner at the CI server: `<base>-<hash>`, and from the second attempt on `-r<attempt>` after it, because a replacement must
 * never carry the name of the runner that it replaces. A long base is cut, so that the whole has at most 64 characters. Pure.
 * @param hash - of the life, so that nobody else's runner has the name
 */
export function runnerName(base: string, hash: string, attempt: number): string {
  const suffix = attempt > 1 ? `-${hash}-r${attempt}` : `-${hash}`;
  return base.slice(0, MAX_RUNNER_NAME - suffix.length) + suffix;
}
