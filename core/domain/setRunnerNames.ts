/** How the runners of a set are called, so that each can be told from its name at the CI server. */

/** A suffix is as long as this; a set's name may have 36 characters, because a runner's name has 47 before its hash and, say, `-r9999`. */
const SUFFIX = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Longest name of a set. */
export const MAX_SET_NAME = 36;

/** A fresh suffix: 36^10 of them, so that none meets an earlier runner's workflow id. @param random - 0 to 1, the workflow's own */
export function randomSuffix(random: () => number): string {
  return Array.from(
    { length: SUFFIX },
    () => ALPHABET[Math.floor(random() * ALPHABET.length)] ?? 'a',
  ).join('');
}

/** `runner-<set>-<suffix>`. */
export function runnerWorkflowId(set: string, suffix: string): string {
  return `runner-${set}-${suffix}`;
}

/**
 * The workflow of a runner of this set, from its name at the CI server: `<set>-<suffix>-<10 hex digits>`, with `-r2` and so on after a
 * replacement. `undefined`: not one of this set's.
 */
export function runnerWorkflowIdFromName(set: string, runnerName: string): string | undefined {
  if (!runnerName.startsWith(`${set}-`)) return undefined;
  const [, suffix] =
    /^([a-z0-9]{10})-[0-9a-f]{10}(?:-r\d+)?$/.exec(runnerName.slice(set.length + 1)) ?? [];
  return suffix === undefined ? undefined : runnerWorkflowId(set, suffix);
}

/** Name of the set that a runner of this name at the CI server may be of, whether there is such a set or not; `undefined`: it is no set's. */
export function setNameFromRunnerName(runnerName: string): string | undefined {
  const [, set] =
    /^([A-Za-z0-9][A-Za-z0-9_.-]{0,35})-[a-z0-9]{10}-[0-9a-f]{10}(?:-r\d+)?$/.exec(runnerName) ??
    [];
  return set;
}

/** The suffix of a runner's workflow id, if it is one that this set has started: one that somebody else started by hand is not its to touch. */
export function runnerSuffix(set: string, workflowId: string): string | undefined {
  const prefix = runnerWorkflowId(set, '');
  const suffix = workflowId.slice(prefix.length);
  return workflowId.startsWith(prefix) && /^[a-z0-9]{10}$/.test(suffix) ? suffix : undefined;
}
