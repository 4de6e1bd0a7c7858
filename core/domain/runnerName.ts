/** Maximum length of a runner's name (characters). CI servers reject longer ones. */
const MAX_RUNNER_NAME = 64;

/** Returns the hash in a name of {@link runnerName}, or `undefined` for any other name. Pure. */
export function parseRunnerNameHash(name: string): string | undefined {
  return /-([0-9a-f]{10})(?:-r\d+)?$/.exec(name)?.[1];
}

/**
 * Returns the attempt in a name of {@link runnerName}: 1 without a suffix, `undefined` for any other
 * name. Pure.
 */
export function parseRunnerAttempt(name: string): number | undefined {
  const [, attempt = '1'] = /-[0-9a-f]{10}(?:-r(\d{1,9}))?$/.exec(name) ?? [undefined, ''];
  return attempt === '' ? undefined : Number(attempt);
}

/**
 * Returns the workflow ID of the runner that may have this name at the CI server, if its workflow
 * was started as `runner-<name>`, as sets and `holdfast` do. Anyone can choose such a name, so only
 * that workflow knows whether the runner exists and the name is its own. Pure.
 * @returns `undefined` if no runner of Holdfast has such a name
 */
export function workflowIdFromRunnerName(name: string): string | undefined {
  const [, base] =
    /^([A-Za-z0-9][A-Za-z0-9_.-]{0,49})-[0-9a-f]{10}(?:-r\d{1,9})?$/.exec(name) ?? [];
  return base === undefined ? undefined : `runner-${base}`;
}

/**
 * Returns the name of a runner at the CI server: `<base>-<hash>`, followed by `-r<attempt>` from
 * the second attempt on, because a replacement must never have the name of the runner that it
 * replaces. A long base is truncated, so that the name has at most 64 characters. Pure.
 * @param hash - identifies the runner workflow, so that no other runner has the name
 */
export function runnerName(base: string, hash: string, attempt: number): string {
  const suffix = attempt > 1 ? `-${hash}-r${attempt}` : `-${hash}`;
  return base.slice(0, MAX_RUNNER_NAME - suffix.length) + suffix;
}
