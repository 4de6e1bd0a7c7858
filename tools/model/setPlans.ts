/**
 * Model of the plan of a runner set: all sets with few runners, whose runners start, drain, take
 * jobs and get lost in every order, while size and template change. The plan comes from `planSet`
 * (workflows/runnerSet/plan.ts).
 */
import { planSet, type PlannedRunner, type SetPlan } from '../../workflows/runnerSet/plan.ts';
import { checkPlan, checkStable } from './setPlanInvariants.ts';
import { MAX_SURGE, type ModelRunner, type SetState } from './setState.ts';

/** Maximum number of fair steps until a set is stable. */
const MAX_STEPS = 60;

/** Limits of the exploration. */
export interface SetPlanLimits {
  /** Maximum number of desired runners. */
  readonly maxDesired: number;
  /** Maximum number of existing runners, draining ones included. Larger states are left out. */
  readonly maxRunners: number;
}
const LIMITS: SetPlanLimits = { maxDesired: 3, maxRunners: 5 };

/** Result of an exploration. */
export interface SetPlanExploration {
  readonly states: number;
  readonly steps: number;
  /** Messages of all different violations. */
  readonly violations: readonly string[];
}

/** Explores all states within the limits. @param plan - replaced by tests */
export function exploreSetPlans(
  plan: typeof planSet = planSet,
  limits: SetPlanLimits = LIMITS,
): SetPlanExploration {
  const found = new Map<string, SetState>();
  const violations = new Set<string>();
  /** The violation of the stable state that each state leads to. */
  const ends = new Map<string, string | undefined>();
  let steps = 0;
  for (const ephemeral of [true, false]) add({ ephemeral, desired: 0, settled: true, runners: [] });
  // The iteration includes states that are added during it.
  for (const state of found.values()) {
    const planned = planOf(state, plan, limits);
    for (const message of [
      checkPlan(state, plannedRunners(state), planned, limits.maxDesired),
      checkConvergence(state, plan, limits, ends),
    ])
      if (message !== undefined) violations.add(`${message}: ${keyOf(state)}`.slice(0, 300));
    for (const next of [execute(state, planned), ...possibleSteps(state, limits)]) add(next);
  }
  return { states: found.size, steps, violations: [...violations] };

  function add(state: SetState): void {
    if (state.runners.length > limits.maxRunners) return;
    const sorted = { ...state, runners: state.runners.toSorted() };
    const key = keyOf(sorted);
    steps++;
    if (!found.has(key)) found.set(key, sorted);
  }
}

const keyOf = ({ ephemeral, desired, settled, runners }: SetState): string =>
  `${ephemeral ? 'ephemeral' : 'static'}, ${desired} desired${settled ? '' : ' (just changed)'}: ${runners.join(', ') || 'none'}`;

function plannedRunners({ ephemeral, runners }: SetState): PlannedRunner[] {
  return runners.map((runner, index) => {
    const [templateHash = '', state = ''] = runner.split(/[ !]/);
    return {
      workflowId: String(index),
      templateHash,
      state: state as PlannedRunner['state'],
      startedAt: index,
      onHold: runner.endsWith('!'),
      ready: /idle|busy/.test(state),
      ephemeral,
      unresponsive: false,
      withdrawn: false,
    };
  });
}

/** Returns the plan of a state. The limit of the set is the maximum of desired runners. */
function planOf(state: SetState, plan: typeof planSet, { maxDesired }: SetPlanLimits): SetPlan {
  return plan({
    runners: plannedRunners(state),
    templateHash: 'new',
    desired: state.desired,
    maxRunners: maxDesired,
    guardedRunners: 0,
    maxStarts: Number.POSITIVE_INFINITY,
    maxSurge: MAX_SURGE,
    recentPeak: state.settled ? 0 : Number.POSITIVE_INFINITY,
    mode: 'run',
  });
}

/** Returns the state after the plan was executed. */
function execute(state: SetState, { start, drain }: SetPlan): SetState {
  const drained = new Set(drain.map(({ workflowId }) => Number(workflowId)));
  const runners = state.runners.map((runner, index) =>
    drained.has(index) ? withState(runner, 'draining') : runner,
  );
  const started = Array.from({ length: start }, (): ModelRunner => 'new starting');
  return { ...state, settled: state.settled && start === 0, runners: [...runners, ...started] };
}

const withState = (runner: ModelRunner, state: PlannedRunner['state']): ModelRunner =>
  runner.replace(/ \w+/, ` ${state}`) as ModelRunner;

/** Replaces the runner at the index, or removes it. */
const replaceRunner = (state: SetState, index: number, ...by: ModelRunner[]): SetState => ({
  ...state,
  runners: state.runners.toSpliced(index, 1, ...by),
});

/** Returns the steps that happen eventually. */
function* fairSteps(state: SetState): Generator<SetState, void> {
  if (!state.settled) yield { ...state, settled: true };
  for (const [index, runner] of state.runners.entries()) {
    if (runner.includes('starting')) yield replaceRunner(state, index, withState(runner, 'idle'));
    if (runner.includes('busy'))
      yield state.ephemeral
        ? replaceRunner(state, index)
        : replaceRunner(state, index, withState(runner, 'idle'));
    if (runner.includes('draining')) yield replaceRunner(state, index);
  }
}

/** Returns all steps that can happen. */
function* possibleSteps(state: SetState, { maxDesired }: SetPlanLimits): Generator<SetState> {
  yield* fairSteps(state);
  for (let desired = 0; desired <= maxDesired; desired++)
    if (desired !== state.desired)
      yield { ...state, desired, settled: state.settled && desired < state.desired };
  if (state.runners.some((runner) => runner.startsWith('new')))
    yield {
      ...state,
      runners: state.runners.map((runner) => runner.replace('new', 'old') as ModelRunner),
    };
  const isHeld = state.runners.some((runner) => runner.endsWith('!'));
  for (const [index, runner] of state.runners.entries()) {
    yield replaceRunner(state, index);
    if (runner.includes('idle')) yield replaceRunner(state, index, withState(runner, 'busy'));
    if (runner.endsWith('!')) yield replaceRunner(state, index, runner.slice(0, -1) as ModelRunner);
    else if (!isHeld && !runner.includes('draining'))
      yield replaceRunner(state, index, `${runner}!` as ModelRunner);
  }
}

/** Checks that fair steps alone lead to a stable state, and checks that state. */
function checkConvergence(
  state: SetState,
  plan: typeof planSet,
  limits: SetPlanLimits,
  ends: Map<string, string | undefined>,
): string | undefined {
  const path: string[] = [];
  let violation: string | undefined = 'the set does not become stable';
  for (let current = state; path.length < MAX_STEPS;) {
    const key = keyOf(current);
    if (ends.has(key)) {
      violation = ends.get(key);
      break;
    }
    path.push(key);
    const planned = planOf(current, plan, limits);
    const isIdle = planned.start === 0 && planned.drain.length === 0;
    if (isIdle && [...fairSteps(current)].length === 0) {
      violation = checkStable(current);
      break;
    }
    current = execute(current, planned);
    for (const _step of fairSteps(current)) current = fairSteps(current).next().value ?? current;
  }
  for (const key of path) ends.set(key, violation);
  return violation;
}
