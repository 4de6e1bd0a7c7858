/**
 * The invariants of the plan of a runner set. Each check returns a message that describes the
 * violation, or `undefined`.
 */
import type { PlannedRunner, SetPlan } from '../../workflows/runnerSet/plan.ts';
import { MAX_SURGE, type SetState } from './setState.ts';

const isCurrent = ({ templateHash }: PlannedRunner): boolean => templateHash === 'new';

/** Checks a plan. @param maxDesired - maximum number of runners of the set */
export function checkPlan(
  { desired }: SetState,
  runners: readonly PlannedRunner[],
  { start, drain }: SetPlan,
  maxDesired: number,
): string | undefined {
  const staying = runners.filter((runner) => runner.state !== 'draining');
  const drained = drain.map(({ workflowId }) => runners[Number(workflowId)] as PlannedRunner);
  const kept = staying.filter((runner) => !drained.includes(runner));
  if (drained.some(({ onHold }) => onHold)) return 'a held runner is drained';
  if (kept.length < Math.min(staying.length, desired)) return 'fewer runners stay than desired';
  return (
    checkStarts({ desired, start, runners, maxDesired }) ??
    checkBusyDrains(drained, kept) ??
    checkScaleDown(drained, kept)
  );
}

interface Starts {
  readonly desired: number;
  readonly start: number;
  readonly runners: readonly PlannedRunner[];
  readonly maxDesired: number;
}

function checkStarts({ desired, start, runners, maxDesired }: Starts): string | undefined {
  if (start === 0) return undefined;
  const current = runners.filter(
    (runner) => runner.state !== 'draining' && isCurrent(runner),
  ).length;
  const old = runners.filter((runner) => !isCurrent(runner)).length;
  if (current + start > desired) return 'more runners are started than desired';
  if (old > 0 && current + old + start > desired + MAX_SURGE)
    return 'more runners are started than the surge allows';
  if (runners.length + start > maxDesired + Math.min(MAX_SURGE, old))
    return 'more runners are started than the limit allows';
  return undefined;
}

function checkBusyDrains(
  drained: readonly PlannedRunner[],
  kept: readonly PlannedRunner[],
): string | undefined {
  const busy = drained.filter((runner) => runner.state === 'busy');
  if (busy.some(isCurrent)) return 'a busy runner with the current template is drained';
  if (busy.some(({ ephemeral }) => ephemeral)) return 'a busy ephemeral runner is drained';
  const hasAlternative = kept.some(
    (runner) => !isCurrent(runner) && runner.state !== 'busy' && !runner.onHold,
  );
  return busy.length > 0 && hasAlternative
    ? 'a busy runner is drained although another is not busy'
    : undefined;
}

function checkScaleDown(
  drained: readonly PlannedRunner[],
  kept: readonly PlannedRunner[],
): string | undefined {
  const isIdleDrained = drained.some((runner) => isCurrent(runner) && runner.state === 'idle');
  const hasAlternative = kept.some(
    (runner) => isCurrent(runner) && runner.state === 'starting' && !runner.onHold,
  );
  return isIdleDrained && hasAlternative
    ? 'an idle runner is drained although another is still starting'
    : undefined;
}

/**
 * Checks a state in which nothing happens any more. A held runner with an old template takes the
 * place of one that would be started, but not of one that exists.
 */
export function checkStable({ desired, runners }: SetState): string | undefined {
  const current = runners.filter((runner) => runner.startsWith('new'));
  if (runners.some((runner) => runner.startsWith('old') && !runner.endsWith('!')))
    return 'the stable set has a runner with an old template';
  if (runners.length < desired) return 'the stable set has fewer runners than desired';
  return current.length > desired && current.some((runner) => !runner.endsWith('!'))
    ? 'the stable set has more runners than desired'
    : undefined;
}
