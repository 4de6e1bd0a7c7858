/** GitHub refuses longer runner names. */
const MAX_RUNNER_NAME = 64;

/** The hash in a name that {@link runnerName} has made; `undefined`: it did not make this one. Pure. */
export function hashInRunnerName(name: string): string | undefined {
  return /-([0-9a-f]{10})(?:-r\d+)?$/.exec(name)?.[1];
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
