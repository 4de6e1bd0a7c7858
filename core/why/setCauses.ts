/** Causes for which a set waits, and for which it has no runner for a job. Pure. */
import { WAIT_CAUSES, type WaitCause, type WaitReason } from '../contract/index.ts';
import type { SetFacts } from './facts.ts';
import { runnerCauses } from './runnerCauses.ts';
import { failureCauses, workflowCauses } from './workflowCauses.ts';

/** Waits of a set that never keep a job waiting. */
const HARMLESS: ReadonlySet<WaitCause> = new Set([
  'rollout',
  'scale_down',
  'drain_unconfirmed',
  'reroute',
  'queued_long',
]);

/** Commands that end the waits of a set. */
const FIXES: Partial<Record<WaitCause, (set: SetFacts) => string>> = {
  paused: ({ name }) => `holdfast set resume ${name}`,
  breaker: ({ name }) => `fix the cause, then: holdfast set resume ${name}`,
  max: raiseMax,
  capacity: () => 'add nodes, raise the quota, or lower the requests of the template',
  limit: () => "raise limits in the set's declaration, and apply it",
  runner_hours: () => "raise limits.maxRunnerHours in the set's declaration, and apply it",
};

/** Returns how to let a set have more runners. A set that is scaled by `--max` follows demand. */
function raiseMax({ name, resource, status }: SetFacts): string {
  const isFixed = status?.replicas !== undefined;
  const how =
    resource === undefined
      ? `holdfast set scale ${name} ${isFixed ? '--replicas' : '--max'} N`
      : `raise ${isFixed ? 'replicas' : 'max'} of the RunnerSet ${resource.namespace}/${resource.name}`;
  return `${how}, if the cluster has room`;
}

/** Facts of a job for which a set has no runner. */
export interface WaitingJob {
  /** Whether limits of the set hold back jobs of its repository. */
  readonly limited: boolean;
}

/** Returns everything that a running set waits for, the decisive cause first. */
export function setCauses(facts: SetFacts): WaitReason[] {
  if (facts.end !== undefined) return [];
  return inOrder([...stuckCauses(facts), ...ownCauses(facts), ...startingCauses(facts)]);
}

/** Returns why a running set has no runner for a job, the decisive cause first. */
export function jobCausesOfSet(facts: SetFacts, job: WaitingJob): WaitReason[] {
  if (facts.end !== undefined) return [];
  const own = ownCauses(facts);
  const isFull = own.some(({ cause }) => cause === 'max');
  const blocking = own.filter(
    ({ cause }) =>
      !HARMLESS.has(cause) &&
      (cause !== 'limit' || job.limited) &&
      // Outside of a maximum that is reached, a schedule keeps no job waiting.
      (cause !== 'schedule' || isFull),
  );
  return inOrder([...stuckCauses(facts), ...blocking, ...startingCauses(facts)]);
}

function stuckCauses(facts: SetFacts): WaitReason[] {
  const { status, notAdmitted } = facts;
  const stuck = workflowCauses(facts, status !== undefined || notAdmitted !== undefined);
  return notAdmitted === undefined || stuck.length > 0
    ? stuck
    : [{ cause: 'not_admitted', text: notAdmitted }];
}

/** Returns the waits that the set states, with the reason of its listener for a scale set. */
function ownCauses(facts: SetFacts): WaitReason[] {
  const { status, listener } = facts;
  const [refined] = failureCauses(listener);
  return (status?.waits ?? []).map((wait) => {
    const cause = wait.cause === 'scale_set' ? (refined?.cause ?? wait.cause) : wait.cause;
    const fix = FIXES[cause]?.(facts);
    return { ...wait, cause, ...(fix === undefined ? {} : { fix }) };
  });
}

/** Returns the causes of the starting runners, each cause once. */
function startingCauses({ starting }: SetFacts): WaitReason[] {
  const causes = new Map<WaitCause, WaitReason>();
  for (const runner of starting)
    for (const reason of runnerCauses(runner))
      if (!causes.has(reason.cause)) causes.set(reason.cause, { ...reason, runner: runner.id });
  return [...causes.values()];
}

/** Sorts the causes: those that keep a workflow or a set from proceeding come first. */
function inOrder(causes: readonly WaitReason[]): WaitReason[] {
  return causes.toSorted((a, b) => WAIT_CAUSES.indexOf(a.cause) - WAIT_CAUSES.indexOf(b.cause));
}
