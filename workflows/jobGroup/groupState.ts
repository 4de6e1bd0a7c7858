/**
 * The runs of one job for one change set: one at a time, and of those that wait the newest alone. A newer version has the older one ended first, and
 * begins when that is over, its pods included. Pure; the state is plain data, for a continue-as-new.
 */
import { RUNNER_OUTCOMES, type RunnerOutcome } from '../../core/contract/index.ts';
import { COMMIT } from '../../core/domain/gitNames.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

export interface GroupState {
  /** Counts the versions that were taken; the newest has this number. 0: none yet. */
  readonly runNumber: number;
  /** Commit of the newest, whatever has become of it. */
  readonly commit?: string;
  /** What the CI server told last of the change set; not that, where somebody has asked for another. */
  readonly lastRevision?: Version;
  readonly running?: RunningVersion;
  /** Is the newest still to be run? */
  readonly queued: boolean;
  /** What has become of the newest, once its run is over. What becomes of an older one counts for nothing. */
  readonly outcome?: RunnerOutcome;
}

export interface Version {
  readonly commit: string;
  /** When the change set came to be so, by the CI server's clock (ms since the epoch). */
  readonly atMs: number;
}

export interface RunningVersion {
  readonly runNumber: number;
  /** It was told that a newer one has come. */
  readonly superseded: boolean;
}

export type GroupEvent =
  /** `again`: somebody asks for another run of this commit, of whatever age. */
  | { readonly kind: 'asked'; readonly version: Version; readonly rerun: boolean }
  /** The run is over, and nothing of it is left. */
  | { readonly kind: 'ended'; readonly runNumber: number; readonly outcome: RunnerOutcome };

export type GroupAction =
  | { readonly kind: 'start'; readonly runNumber: number; readonly commit: string }
  | { readonly kind: 'supersede'; readonly runNumber: number };

export const INITIAL_STATE: GroupState = { runNumber: 0, queued: false };

/**
 * Reads what a run says it was handed by the run before: whoever may start a workflow can write it. A run hands on only while nothing runs and
 * nothing waits, so that a state that says otherwise starts nothing. What is no state is a beginning.
 */
export function parseGroupState(raw: unknown): GroupState {
  if (!isObject(raw)) return INITIAL_STATE;
  const { runNumber, commit, lastRevision, outcome } = raw;
  if (!Number.isSafeInteger(runNumber) || (runNumber as number) < 0) return INITIAL_STATE;
  return {
    runNumber: runNumber as number,
    queued: false,
    ...omitUndefined({
      commit: isCommit(commit) ? commit : undefined,
      lastRevision: isVersion(lastRevision) ? lastRevision : undefined,
      outcome: RUNNER_OUTCOMES.find((known) => known === outcome),
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
  const { version, rerun } = event;
  const isNews = isLater(version, state.lastRevision);
  const known = isNews ? { ...state, lastRevision: version } : state;
  return rerun || (isNews && version.commit !== state.commit)
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

/** A webhook that is delivered late, or once more, tells of what was. Within the same moment the last to come counts. */
function isLater({ commit, atMs }: Version, told: Version | undefined): boolean {
  return told === undefined || (commit !== told.commit && atMs >= told.atMs);
}

function take({ outcome: _older, ...before }: GroupState, commit: string): Step {
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
  { outcome }: Extract<GroupEvent, { kind: 'ended' }>,
): GroupState {
  return state.queued ? state : { ...state, outcome };
}
