/**
 * Runners that are unresponsive: their pods report them as listening, but they are offline at the
 * CI server. Pure.
 */
import type { RunnerPhase } from '../contract/index.ts';
import type { RunnerWorkflow } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/** Phases in which the workflow itself deletes its pod, or has deleted it. */
export const TEARDOWN_PHASES: ReadonlySet<RunnerPhase> = new Set([
  'Draining',
  'Unregistering',
  'TearingDown',
  'Gone',
]);

/**
 * Number of idle runners of a scope from which more than half of them are not considered
 * unresponsive at once: then the CI server, or the connection to it, is the cause.
 */
const IDLE_THRESHOLD = 4;

/**
 * Returns the pod of a runner workflow if the pod reports that its runner is idle. A runner without
 * the supervisor does not report its state.
 */
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

/**
 * Whether the runner is offline in one list of the CI server. The list may be outdated, so
 * it has no consequence by itself.
 */
export function isUnresponsive(runner: RunnerWorkflow): boolean {
  return (
    idlePodOf(runner) !== undefined &&
    runner.registration?.online === false &&
    !runner.registration.busy
  );
}

/**
 * Returns the scopes in which so many idle runners are offline at once that none of them must be
 * replaced.
 */
export function massOfflineScopes(runners: readonly RunnerWorkflow[]): ReadonlySet<string> {
  const idle = Map.groupBy(
    runners.filter(
      (runner) => runner.registration !== undefined && idlePodOf(runner) !== undefined,
    ),
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
