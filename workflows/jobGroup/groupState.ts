/**
 * The runs of one job for one change set: one at a time, and of those that wait the newest alone. A newer version has the older one ended first, and
 * begins when that is over, its pods included. Pure; the state is plain data, for a continue-as-new.
 */
import { RUNNER_OUTCOMES, type RunnerOutcome } from '../../core/contract/index.ts';
import { COMMIT } from '../../core/domain/gitNames.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** State of a job group. Plain data, for a continue-as-new. */
export interface GroupState {
  /** Number of revisions accepted so far, and the number of the newest one. 0: none yet. */
  readonly runNumber: number;
  /** Commit of the newest revision. */
  readonly commit?: string;
  /**
   * Latest revision according to the CI server. It differs from the newest one if a user requested
   * a rerun of another commit.
   */
  readonly lastRevision?: Version;
  readonly running?: RunningVersion;
  /** Whether the newest revision has not been started yet. */
  readonly queued: boolean;
  /**
   * Outcome of the newest revision, once its run has ended. Outcomes of older ones are ignored.
   * `aborted` if a cancel came before its run.
   */
  readonly outcome?: RunnerOutcome;
  /** Whether a cancel came after the newest revision: the same commit may be run again. */
  readonly cancelled?: true;
}

/** Revision of a change set. */
export interface Version {
  readonly commit: string;
  /** Time of the change according to the CI server (ms since the epoch). */
  readonly atMs: number;
}

/** Run in progress. */
export interface RunningVersion {
  readonly runNumber: number;
  /** Whether the run was asked to end in favor of a newer revision. */
  readonly superseded: boolean;
}

/** Event that changes the state of a job group. */
export type GroupEvent =
  /** `again`: somebody asks for another run of this commit, of whatever age. */
  | { readonly kind: 'asked'; readonly version: Version; readonly rerun: boolean }
  /** No revision that is known so far is to be run, as after the closing of a pull request. */
  | { readonly kind: 'cancelled' }
  /** The run is over, and nothing of it is left. */
  | { readonly kind: 'ended'; readonly runNumber: number; readonly outcome: RunnerOutcome };

/** Action of a job group: start the run of a revision, end one in favor of a newer revision, or pass a cancel request on to it. */
export type GroupAction =
  | { readonly kind: 'start'; readonly runNumber: number; readonly commit: string }
  | { readonly kind: 'supersede'; readonly runNumber: number }
  | { readonly kind: 'cancel'; readonly runNumber: number };

/** State before the first revision. */
export const INITIAL_STATE: GroupState = { runNumber: 0, queued: false };

/**
 * Reads what a run says it was handed by the run before: whoever may start a workflow can write it. A run hands on only while nothing runs and
 * nothing waits, so that a state that says otherwise starts nothing. What is no state is a beginning.
 */
export function parseGroupState(raw: unknown): GroupState {
  if (!isObject(raw)) return INITIAL_STATE;
  const { runNumber, commit, lastRevision, outcome, cancelled } = raw;
  if (!Number.isSafeInteger(runNumber) || (runNumber as number) < 0) return INITIAL_STATE;
  return {
    runNumber: runNumber as number,
    queued: false,
    ...omitUndefined({
      commit: isCommit(commit) ? commit : undefined,
      lastRevision: isVersion(lastRevision) ? lastRevision : undefined,
      outcome: RUNNER_OUTCOMES.find((known) => known === outcome),
      cancelled: cancelled === true || undefined,
    }),
  };
}

const isCommit = (value: unknown): value is string =>
  typeof value === 'string' && COMMIT.test(value);

function isVersion(value: unknown): value is Version {
  return isObject(value) && isCommit(value['commit']) && Number.isFinite(value['atMs']);
}

interface Step {
  readonly state: GroupState;
  readonly actions: readonly GroupAction[];
}

/** What an event changes, and what is to be done about it. Afterwards, when all that is known has been taken in: {@link begin}. */
export function step(state: GroupState, event: GroupEvent): Step {
  if (event.kind === 'ended')
    return {
      state: event.runNumber === state.running?.runNumber ? afterRun(state, event) : state,
      actions: [],
    };
  if (event.kind === 'cancelled') return cancel(state);
  const { version, rerun } = event;
  const isNews = isLater(version, state);
  const known = isNews ? { ...state, lastRevision: version } : state;
  return rerun || (isNews && (state.cancelled === true || version.commit !== state.commit))
    ? take(known, version.commit)
    : { state: known, actions: [] };
}

/** Starts the newest, if it waits and nothing runs any more. */
export function begin(state: GroupState): Step {
  const { runNumber, commit, running, queued } = state;
  if (!queued || running !== undefined || commit === undefined) return { state, actions: [] };
  return {
    state: { ...state, queued: false, running: { runNumber, superseded: false } },
    actions: [{ kind: 'start', runNumber, commit }],
  };
}

/** Will the newest be to be run once this has been taken in, too? Who asks meanwhile must not hear of the older one's end as the last word. */
export function willRun(state: GroupState, unread: readonly GroupEvent[]): boolean {
  return unread.reduce((known, event) => step(known, event).state, state).queued;
}

/**
 * A webhook that is delivered late, or once more, tells of what was. Within the same moment the last to come counts. After a cancel the same commit
 * is news if it comes with a later time, as of a pull request that is opened again.
 */
function isLater(
  { commit, atMs }: Version,
  { lastRevision: told, cancelled }: GroupState,
): boolean {
  if (told === undefined) return true;
  return commit === told.commit ? cancelled === true && atMs > told.atMs : atMs >= told.atMs;
}

function cancel(state: GroupState): Step {
  const { queued, running } = state;
  if (running !== undefined)
    return {
      state: { ...state, queued: false, cancelled: true },
      actions: [{ kind: 'cancel', runNumber: running.runNumber }],
    };
  return {
    state: { ...state, queued: false, cancelled: true, ...(queued ? { outcome: 'aborted' } : {}) },
    actions: [],
  };
}

function take(
  { outcome: _older, cancelled: _earlier, ...before }: GroupState,
  commit: string,
): Step {
  const state = { ...before, runNumber: before.runNumber + 1, commit, queued: true };
  const { running } = before;
  if (running === undefined || running.superseded) return { state, actions: [] };
  return {
    state: { ...state, running: { ...running, superseded: true } },
    actions: [{ kind: 'supersede', runNumber: running.runNumber }],
  };
}

function afterRun(
  { running: _over, ...state }: GroupState,
  { runNumber, outcome }: Extract<GroupEvent, { kind: 'ended' }>,
): GroupState {
  if (state.queued) return state;
  return { ...state, outcome: runNumber === state.runNumber ? outcome : 'aborted' };
}
