/** What the workflow knows, and how updates change it. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { PodView } from '../../core/domain/pod.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import type { AttemptFailure, CurrentRunner } from '../../workflows/runner/carriedState.ts';
import { NO_JOBS } from '../../workflows/runner/jobEvents.ts';
import { recordPod } from '../../workflows/runner/podWaits.ts';
import {
  commandStarted,
  confirmIdle,
  onJobEvent,
  onPodState,
  onRejectedAsBusy,
} from '../../workflows/runner/runnerActivity.ts';
import { RunnerState } from '../../workflows/runner/state.ts';
import { abstractRunner, JOB_IDS } from './abstraction.ts';
import { STARTED_MS } from './podViews.ts';
import type { Setup, State } from './state.ts';
import type { Update } from './updates.ts';

/** The part of the workflow's state that decisions depend on. */
export interface Knowledge {
  readonly setup: Setup;
  readonly runner: CurrentRunner;
  readonly cancel?: Cancellation;
  readonly fixedCancel?: { readonly cancel?: Cancellation };
  readonly neverStartedInARow: number;
}

const RUNNER_ID = '7';
const LOCATION = {
  compute: 'kubernetes',
  cluster: 'c',
  namespace: 'n',
  installation: 'i',
} as const;

/** Time of a job event by the CI server's clock. Events of the two jobs are 10 minutes apart. */
const jobTimeMs = (job: 'A' | 'B', action: string): number =>
  STARTED_MS + ((job === 'A' ? 0 : 2) + (action === 'completed' ? 1 : 0)) * 600_000;

/**
 * Returns what a workflow knows that has just been admitted.
 * @param neverStartedInARow - number of its previous runners whose container never started
 */
export const initialKnowledge = (setup: Setup, neverStartedInARow: number): Knowledge => ({
  setup,
  runner: {
    identity: { workflowId: 'w', firstRunId: 'r', attempt: 1 },
    online: false,
    hadJob: false,
    jobs: NO_JOBS,
  },
  neverStartedInARow,
});

/** Returns the state of a workflow that knows this. */
export function restoreState(
  { runner: known, cancel, fixedCancel, neverStartedInARow }: Knowledge,
  spec: RunnerSpec,
  failure: State['failure'],
): RunnerState {
  const { identity, ...runner } = copyOf(known);
  const carried = {
    ...omitUndefined({ failure: attemptFailure(failure), cancel }),
    notifiedOnline: false,
    createdAtMs: STARTED_MS,
    runnerName: '',
    location: LOCATION,
    attempt: identity.attempt,
    runner,
    phases: [],
    replacements: [],
    unregisterAttempts: 0,
    usedJobMs: 0,
    neverStartedInARow,
    shortLivedInARow: 0,
  };
  const state = new RunnerState('w', 'r', STARTED_MS);
  state.restore(carried);
  state.admit({ ...spec, location: LOCATION });
  state.fixedCancel = fixedCancel;
  return state;
}

/** Returns what the workflow knows, without details that no decision depends on. */
export function knowledgeOf(state: RunnerState, { setup, deletedBy }: State): Knowledge {
  const { runner, cancel, fixedCancel } = state;
  return {
    setup,
    runner: abstractRunner(runner, { isTerminating: deletedBy !== 'none' }),
    neverStartedInARow: runner.pod?.startedAt === undefined ? state.neverStartedInARow : 0,
    ...omitUndefined({ cancel, fixedCancel }),
  };
}

/** Returns what the workflow knows at the start of the runner that replaces a lost one. */
export function replacementKnowledge(state: RunnerState, setup: Setup): Knowledge {
  state.countLostAttempt({ shortLived: true });
  state.replaceRunner();
  const { runner, neverStartedInARow } = state;
  return { setup, runner, neverStartedInARow };
}

/** Applies an update, except a cancellation, as the workflow does. */
export function applyUpdate(
  state: RunnerState,
  update: Exclude<Update, { kind: 'cancel' }>,
  viewAt: (view: number) => PodView,
): void {
  const { runner } = state;
  switch (update.kind) {
    case 'provisioned':
      runner.pod = viewAt(update.view);
      recordPod(state, runner.pod);
      if (state.spec.registrationMode === 'jit' && state.spec.scope !== undefined)
        runner.id = RUNNER_ID;
      return;
    case 'observed':
      return void recordPod(state, viewAt(update.view));
    case 'ended': // as awaitEnd
      if (recordPod(state, viewAt(update.view))) runner.ended = viewAt(update.view);
      return;
    case 'endedDuringStartup': // as becomeOnline
      runner.ended = runner.pod as PodView;
      return;
    case 'job':
      return onJobEvent(state, {
        action: update.action,
        jobId: JOB_IDS[update.job],
        at: jobTimeMs(update.job, update.action),
        runnerName: state.runnerName,
        ...(update.action === 'completed' ? { conclusion: update.conclusion } : {}),
      });
    case 'podState':
      return onPodState(state, { uid: runner.pod?.uid ?? '', state: update.state });
    case 'unregistered':
      return state.fixVerdictCancel();
    case 'podInDoubt':
      return void (runner.podInDoubt = true);
    case 'confirmedIdle':
      return confirmIdle(state, Number.MAX_SAFE_INTEGER);
    case 'idFound':
      return void (runner.id = RUNNER_ID);
    case 'onlineAtServer': // as register
      return void Object.assign(runner, { online: true, id: RUNNER_ID });
    case 'online': // as isOnline
      runner.online = true;
      if (state.spec.scope === undefined) commandStarted(state);
      return;
    case 'rejectedAsBusy': // as remove
      return onRejectedAsBusy(state);
  }
}

/** Copies what a workflow changes in place: the fields, and lists in them. Views are replaced. */
function copyOf<T extends object>(value: T): T {
  return Object.fromEntries(
    Object.entries(value).map(([name, field]: [string, unknown]) => [
      name,
      Array.isArray(field) ? structuredClone(field) : field,
    ]),
  ) as T;
}

function attemptFailure(failure: State['failure']): AttemptFailure | undefined {
  if (failure === 'none') return undefined;
  return failure === 'provisioning'
    ? { message: 'rejected' }
    : { message: 'timed out', cause: failure };
}
