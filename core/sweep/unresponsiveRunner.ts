/**
 * Runners that are unresponsive: their pods report them as listening, but they are offline at the
 * CI server. Pure.
 */
import type { RunnerPhase } from '../contract/index.ts';
import type { RunnerWorkflow } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/** Its pod goes, or has gone, by its own doing. */
export const TEARDOWN_PHASES: ReadonlySet<RunnerPhase> = new Set([
  'Draining',
  'Unregistering',
  'TearingDown',
  'Gone',
]);

/** From so many idle runners of a scope on, more than half of them do not hang at once: it is the CI server that does not see them, or the way to it. */
const IDLE_THRESHOLD = 4;

/** The pod of a life whose runner is idle, by that pod's own word. A runner without the supervisor does not tell. */
function idlePodOf({ phase, hasPoller, pods }: RunnerWorkflow): OwnedObject | undefined {
  const [only] = pods;
  if (
    !hasPoller ||
    TEARDOWN_PHASES.has(phase) ||
    pods.length !== 1 ||
    only?.pod === undefined ||
    only.onHold ||
    only.terminating
  )
    return undefined;
  const { online, busy, ended, terminating, disruptionReason } = only.pod;
  return online === true &&
    busy === false &&
    !ended &&
    !terminating &&
    disruptionReason === undefined
    ? only
    : undefined;
}

/** By one list, which may be old: nothing follows from it alone. */
export function isUnresponsive(life: RunnerWorkflow): boolean {
  return (
    idlePodOf(life) !== undefined && life.registration?.online === false && !life.registration.busy
  );
}

/** The scopes of which so many idle runners are offline at once that none of them is to be replaced for it. */
export function massOfflineScopes(lives: readonly RunnerWorkflow[]): ReadonlySet<string> {
  const idle = Map.groupBy(
    lives.filter((life) => life.registration !== undefined && idlePodOf(life) !== undefined),
    scopeOf,
  );
  return new Set(
    [...idle]
      .filter(
        ([, ofScope]) =>
          ofScope.length >= IDLE_THRESHOLD &&
          ofScope.filter(isUnresponsive).length * 2 > ofScope.length,
      )
      .map(([scope]) => scope),
  );
}

/** Key of a runner's scope, such as `organization acme`. Only for a runner with a registration. */
export const scopeOf = ({ registration }: RunnerWorkflow): string =>
  `${registration?.scope.kind} ${registration?.scope.name}`;
