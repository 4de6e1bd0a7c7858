/**
 * Runs of one job for one change set. One run at a time; of the waiting revisions only the newest
 * is kept. A newer revision ends the older run first, and starts when that run and its pods have
 * ended. Pure. The state is plain data, for continue-as-new.
 */
import { RUNNER_OUTCOMES, type RunnerOutcome } from '../../core/contract/index.ts';
import { COMMIT } from '../../core/domain/gitNames.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
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
  /** Whether the run was requested to end in favor of a newer revision. */
  readonly superseded: boolean;
}

/** Event that changes the state of a job group. */
export type GroupEvent =
  /**
   * A revision has arrived. `rerun`: a user requests another run of this commit, whatever its age.
   */
  | { readonly kind: 'asked'; readonly version: Version; readonly rerun: boolean }
  /** No revision received so far is to be run, for example after a pull request was closed. */
  | { readonly kind: 'cancelled' }
  /** The run has ended, including all of its pods. */
  | { readonly kind: 'ended'; readonly runNumber: number; readonly outcome: RunnerOutcome };

/**
 * Action of a job group: start the run of a revision, end one in favor of a newer revision, or pass
 * a cancel request on to it.
 */
export type GroupAction =
  | { readonly kind: 'start'; readonly runNumber: number; readonly commit: string }
  | { readonly kind: 'supersede'; readonly runNumber: number }
  | { readonly kind: 'cancel'; readonly runNumber: number };

/** State before the first revision. */
export const INITIAL_STATE: GroupState = { runNumber: 0, queued: false };

/**
 * Parses the state carried over from the previous run, which anyone who may start a workflow can
 * write. A run continues as new only while no run is in progress and no revision is waiting, so a
 * state that claims otherwise starts nothing. An invalid state is replaced by the initial state.
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
  return isObject(value) && isCommit(value['commit']) && isTime(value['atMs']);
}

interface Step {
  readonly state: GroupState;
  readonly actions: readonly GroupAction[];
}

/**
 * Returns the state after an event, and the actions that follow. {@link begin} is called
 * afterwards, when all received events have been applied.
 */
export function step(state: GroupState, event: GroupEvent): Step {
  if (event.kind === 'ended')
    return {
      state: event.runNumber === state.running?.runNumber ? afterRun(state, event) : state,
      actions: [],
    };
  if (event.kind === 'cancelled') return cancel(state);
  const { version, rerun } = event;
  const isNewer = isLater(version, state);
  const known = isNewer ? { ...state, lastRevision: version } : state;
  return rerun || (isNewer && (state.cancelled === true || version.commit !== state.commit))
    ? take(known, version.commit)
    : { state: known, actions: [] };
}

/** Starts the newest revision, if it is waiting and no run is in progress. */
export function begin(state: GroupState): Step {
  const { runNumber, commit, running, queued } = state;
  if (!queued || running !== undefined || commit === undefined) return { state, actions: [] };
  return {
    state: { ...state, queued: false, running: { runNumber, superseded: false } },
    actions: [{ kind: 'start', runNumber, commit }],
  };
}

/**
 * Whether the newest revision will be waiting to run after the unread events have been applied. A
 * query in the meantime must not take the end of the older run for the final result.
 */
export function willRun(state: GroupState, unread: readonly GroupEvent[]): boolean {
  return unread.reduce((known, event) => step(known, event).state, state).queued;
}

/**
 * Whether a revision is later than the last one. A webhook delivery that is late or repeated
 * describes an older state. Of two revisions with the same time, the one received last counts.
 * After a cancel, the same commit counts as later if its time is later, for example when a pull
 * request is reopened.
 */
function isLater(
  { commit, atMs }: Version,
  { lastRevision: last, cancelled }: GroupState,
): boolean {
  if (last === undefined) return true;
  return commit === last.commit ? cancelled === true && atMs > last.atMs : atMs >= last.atMs;
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
