import { parseRunnerAttempt, parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { runnerHash } from '../compute/naming.ts';

/**
 * Returns a check whether a name is that of an earlier runner of a running workflow, whose pod no
 * longer exists. A workflow replaces a runner only after its registration is proven absent or
 * handed off, so the workflow no longer uses it. Pure.
 * @param running - names of the current runners of running workflows. A name from visibility may be
 * that of an earlier runner, never that of a later one
 * @param pods - all pods of the location
 */
export function earlierRunnerCheck(
  running: readonly string[],
  pods: readonly OwnedObject[],
): (name: string) => boolean {
  const current = new Map(
    running.map((name) => [parseRunnerNameHash(name), parseRunnerAttempt(name) ?? 1]),
  );
  const withPod = new Set(
    pods.map(({ identity }) => identity && `${runnerHash(identity)} ${identity.attempt}`),
  );
  return (name) => {
    const hash = parseRunnerNameHash(name);
    const attempt = parseRunnerAttempt(name) ?? 1;
    return attempt < (current.get(hash) ?? 1) && !withPod.has(`${hash} ${attempt}`);
  };
}
