/**
 * A set's plan, explored: every set of few runners that starts, drains, loads and loses them in whatever order, while its size and its template
 * change. What is to be done comes from planSet (workflows/runnerSet/plan.ts).
 */
import { planSet, type PlannedRunner, type SetPlan } from '../../workflows/runnerSet/plan.ts';

const SURGE = 1;
const MAX_WAY = 60;

export interface PlanLimits {
  /** How many may be wanted. */
  readonly largest: number;
  /** Those that leave included. What has more is left out. */
  readonly runners: number;
}
const LIMITS: PlanLimits = { largest: 3, runners: 5 };

/** As long as it lives a runner is one of these; `!`: held. */
type Runner = `${'new' | 'old'} ${PlannedRunner['state']}${'' | '!'}`;

interface SetState {
  readonly ephemeral: boolean;
  readonly desired: number;
  /** The time before which nothing is scaled down has come. */
  readonly settled: boolean;
  readonly runners: readonly Runner[];
}

export interface PlanExploration {
  readonly states: number;
  readonly steps: number;
  /** In words, each once. */
  readonly wrongs: readonly string[];
}

export function explorePlan(
  plan: typeof planSet = planSet,
  limits: PlanLimits = LIMITS,
): PlanExploration {
  const found = new Map<string, SetState>();
  const wrongs = new Set<string>();
  /** What is wrong where each comes to rest. */
  const rests = new Map<string, string | undefined>();
  let steps = 0;
  for (const ephemeral of [true, false])
    note({ ephemeral, desired: 0, settled: true, runners: [] });
  // A map is gone through in the order in which things are put into it.
  for (const state of found.values()) {
    const planned = planOf(state, plan, limits);
    for (const wrong of [checkPlan(state, planned, limits), checkEnd(state, plan, limits, rests)])
      if (wrong !== undefined) wrongs.add(`${wrong}: ${keyOf(state)}`.slice(0, 300));
    for (const next of [carriedOut(state, planned), ...whatMayHappen(state, limits)]) note(next);
  }
  return { states: found.size, steps, wrongs: [...wrongs] };

  function note(state: SetState): void {
    if (state.runners.length > limits.runners) return;
    const inOrder = { ...state, runners: state.runners.toSorted() };
    const key = keyOf(inOrder);
    steps++;
    if (!found.has(key)) found.set(key, inOrder);
  }
}

const keyOf = ({ ephemeral, desired, settled, runners }: SetState): string =>
  `${ephemeral ? 'ephemeral' : 'static'}, ${desired} wanted${settled ? '' : ' (since now)'}: ${runners.join(', ') || 'none'}`;

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

/** As many as may be wanted, and no more, may be there. */
function planOf(state: SetState, plan: typeof planSet, { largest }: PlanLimits): SetPlan {
  const recentPeak = state.settled ? 0 : Number.POSITIVE_INFINITY;
  return plan({
    runners: plannedRunners(state),
    templateHash: 'new',
    desired: state.desired,
    maxRunners: largest,
    guardedRunners: 0,
    maxStarts: Number.POSITIVE_INFINITY,
    maxSurge: SURGE,
    recentPeak,
    mode: 'run',
  });
}

function carriedOut(state: SetState, { start, drain }: SetPlan): SetState {
  const asked = new Set(drain.map(({ workflowId }) => Number(workflowId)));
  const left = state.runners.map((runner, index) =>
    asked.has(index) ? become(runner, 'draining') : runner,
  );
  return {
    ...state,
    settled: state.settled && start === 0,
    runners: [...left, ...Array.from({ length: start }, (): Runner => 'new starting')],
  };
}

const become = (runner: Runner, state: PlannedRunner['state']): Runner =>
  runner.replace(/ \w+/, ` ${state}`) as Runner;
const at = (state: SetState, index: number, ...by: Runner[]): SetState => ({
  ...state,
  runners: state.runners.toSpliced(index, 1, ...by),
});

/** Sooner or later each of these does happen. */
function* whatIsPromised(state: SetState): Generator<SetState, void> {
  if (!state.settled) yield { ...state, settled: true };
  for (const [index, runner] of state.runners.entries()) {
    if (runner.includes('starting')) yield at(state, index, become(runner, 'idle'));
    if (runner.includes('busy'))
      yield state.ephemeral ? at(state, index) : at(state, index, become(runner, 'idle'));
    if (runner.includes('draining')) yield at(state, index);
  }
}

function* whatMayHappen(state: SetState, { largest }: PlanLimits): Generator<SetState> {
  yield* whatIsPromised(state);
  for (let desired = 0; desired <= largest; desired++)
    if (desired !== state.desired)
      yield { ...state, desired, settled: state.settled && desired < state.desired };
  if (state.runners.some((runner) => runner.startsWith('new')))
    yield {
      ...state,
      runners: state.runners.map((runner) => runner.replace('new', 'old') as Runner),
    };
  const isHeld = state.runners.some((runner) => runner.endsWith('!'));
  for (const [index, runner] of state.runners.entries()) {
    yield at(state, index);
    if (runner.includes('idle')) yield at(state, index, become(runner, 'busy'));
    if (runner.endsWith('!')) yield at(state, index, runner.slice(0, -1) as Runner);
    else if (!isHeld && !runner.includes('draining'))
      yield at(state, index, `${runner}!` as Runner);
  }
}

/** @returns what is wrong with this plan */
function checkPlan(
  state: SetState,
  { start, drain }: SetPlan,
  { largest }: PlanLimits,
): string | undefined {
  const { desired } = state;
  const runners = plannedRunners(state);
  const staying = runners.filter((runner) => runner.state !== 'draining');
  const current = staying.filter(({ templateHash: generation }) => generation === 'new').length;
  const oldLeft = runners.filter(({ templateHash: generation }) => generation === 'old').length;
  if (start > 0 && current + start > desired) return 'more are started than wanted';
  if (start > 0 && oldLeft > 0 && current + oldLeft + start > desired + SURGE)
    return 'more are started than the surge allows';
  if (start > 0 && runners.length + start > largest + Math.min(SURGE, oldLeft))
    return 'more are started than may be there';
  const chosen = drain.map(({ workflowId }) => runners[Number(workflowId)] as PlannedRunner);
  const kept = staying.filter((runner) => !chosen.includes(runner));
  if (chosen.some(({ onHold: held }) => held)) return 'a held runner is to leave';
  if (kept.length < Math.min(staying.length, desired)) return 'fewer stay than are wanted';
  const busy = chosen.filter((runner) => runner.state === 'busy');
  if (busy.some(({ templateHash: generation }) => generation === 'new'))
    return 'a busy runner of the template of now is to leave';
  if (busy.some(({ ephemeral }) => ephemeral))
    return 'a busy runner is to leave that ends by itself';
  if (
    busy.length > 0 &&
    kept.some(
      (runner) => runner.templateHash === 'old' && runner.state !== 'busy' && !runner.onHold,
    )
  )
    return 'a busy runner is to leave while an idle one could';
  const scaledDown = chosen.filter(({ templateHash: generation }) => generation === 'new');
  if (
    scaledDown.some(({ state: now }) => now === 'idle') &&
    kept.some(
      (runner) => runner.templateHash === 'new' && runner.state === 'starting' && !runner.onHold,
    )
  )
    return 'an idle runner is to leave while one that is not up yet could';
  return undefined;
}

/** When nothing else happens any more it comes to what is wanted, and rests there. */
function checkEnd(
  state: SetState,
  plan: typeof planSet,
  limits: PlanLimits,
  rests: Map<string, string | undefined>,
): string | undefined {
  const way: string[] = [];
  let wrong: string | undefined = 'it does not come to rest';
  for (let now = state; way.length < MAX_WAY;) {
    const key = keyOf(now);
    if (rests.has(key)) {
      wrong = rests.get(key);
      break;
    }
    way.push(key);
    const planned = planOf(now, plan, limits);
    if (
      planned.start === 0 &&
      planned.drain.length === 0 &&
      [...whatIsPromised(now)].length === 0
    ) {
      wrong = checkRest(now);
      break;
    }
    now = carriedOut(now, planned);
    for (const _promise of whatIsPromised(now)) now = whatIsPromised(now).next().value ?? now;
  }
  for (const key of way) rests.set(key, wrong);
  return wrong;
}

/** One of an old template that is held has the place of one that would be started, and of none that is there. */
function checkRest({ desired, runners }: SetState): string | undefined {
  const current = runners.filter((runner) => runner.startsWith('new'));
  if (runners.some((runner) => runner.startsWith('old') && !runner.endsWith('!')))
    return 'it rests with a runner of an old template';
  if (runners.length < desired) return 'it rests with fewer than wanted';
  return current.length > desired && current.some((runner) => !runner.endsWith('!'))
    ? 'it rests with more than wanted'
    : undefined;
}
