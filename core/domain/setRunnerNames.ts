/** Names of the runners of a set. Each runner can be identified by its name at the CI server. */

/**
 * Length of a suffix. A set's name may have 36 characters, because a runner's name has 47 before
 * its hash and, for example, `-r9999`.
 */
const SUFFIX = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Maximum length of a set's name (characters). */
export const MAX_SET_NAME = 36;

/**
 * Returns a random suffix. There are 36^10 of them, so that none equals that of an earlier runner's
 * workflow ID.
 * @param random - returns 0 to 1, the workflow's own random function
 */
export function randomSuffix(random: () => number): string {
  return Array.from(
    { length: SUFFIX },
    () => ALPHABET[Math.floor(random() * ALPHABET.length)] ?? 'a',
  ).join('');
}

/** Returns the workflow ID of a runner: `runner-<set>-<suffix>`. */
export function runnerWorkflowId(set: string, suffix: string): string {
  return `runner-${set}-${suffix}`;
}

/**
 * Returns the workflow ID of a runner of this set from its name at the CI server:
 * `<set>-<suffix>-<10 hex digits>`, with `-r2` and so on after a replacement.
 * @returns `undefined` if it is not a runner of this set
 */
export function runnerWorkflowIdFromName(set: string, runnerName: string): string | undefined {
  if (!runnerName.startsWith(`${set}-`)) return undefined;
  const [, suffix] =
    /^([a-z0-9]{10})-[0-9a-f]{10}(?:-r\d+)?$/.exec(runnerName.slice(set.length + 1)) ?? [];
  return suffix === undefined ? undefined : runnerWorkflowId(set, suffix);
}

/**
 * Returns the name of the set to which a runner with this name at the CI server may belong. The set
 * may not exist.
 * @returns `undefined` if the name is not one of a set's runner
 */
export function setNameFromRunnerName(runnerName: string): string | undefined {
  const [, set] =
    /^([A-Za-z0-9][A-Za-z0-9_.-]{0,35})-[a-z0-9]{10}-[0-9a-f]{10}(?:-r\d+)?$/.exec(runnerName) ??
    [];
  return set;
}

/**
 * Returns the suffix of a runner's workflow ID if this set has started the runner. The set must not
 * touch a runner that was started manually.
 */
export function runnerSuffix(set: string, workflowId: string): string | undefined {
  const prefix = runnerWorkflowId(set, '');
  const suffix = workflowId.slice(prefix.length);
  return workflowId.startsWith(prefix) && /^[a-z0-9]{10}$/.test(suffix) ? suffix : undefined;
}
