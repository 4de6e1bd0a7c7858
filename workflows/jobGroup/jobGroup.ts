import { CancelledFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ChildWorkflowFailure,
  ParentClosePolicy,
  condition,
  continueAsNew,
  log,
  setHandler,
  startChild,
  workflowInfo,
  type ChildWorkflowHandle,
} from '@temporalio/workflow';
import {
  JOB_WORKFLOW,
  cancelSignal,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  type CancelRequest,
  type JobGroupStatus,
  type JobInput,
  type JobResult,
  type RunnerOutcome,
} from '../../core/contract/index.ts';
import { parseCancelRequest } from '../../core/domain/cancellation.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { workerActivities } from '../shared/activityProxies.ts';
import { SignalGate } from '../shared/signalGate.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { COMMIT } from '../../core/domain/gitNames.ts';
import {
  begin,
  parseGroupState,
  willRun,
  step,
  type GroupAction,
  type GroupEvent,
  type GroupState,
} from './groupState.ts';

/** Time after which an idle job group ends. Until then the same commit is not run a second time. */
const IDLE_TIMEOUT = '7d';
/**
 * Time without events before a run starts. Of several pushes in succession only the last is run.
 */
const SETTLED = '1s';

const SUPERSEDED = 'superseded by a newer commit';

/** Received event, with the job or cancel request that belongs to it. */
interface ReceivedEvent {
  readonly event: GroupEvent;
  readonly job?: JobInput;
  readonly cancel?: CancelRequest;
}

/**
 * Runs one job for the revisions of one change set, one run at a time. The workflow id is that of
 * the change set (core/domain/changeSet.ts). Start the workflow together with its first signal
 * `revision`. A newer revision ends the older run first. The signal `cancel` ends the run and
 * drops the waiting revision. The workflow completes by itself if nothing has run for a week.
 *
 * @param carried - state of the previous run: numbers and names, which grant nothing. The job to
 * run arrives with a signal and is admitted by the job workflow itself.
 */
export async function jobGroup(carried?: GroupState): Promise<void> {
  const group = workflowInfo().workflowId;
  const received: ReceivedEvent[] = [];
  let state = parseGroupState(carried);
  let job: JobInput | undefined;
  let cancel: CancelRequest | undefined;
  let run: ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined;
  const gate = revisionGate(received);
  setHandler(
    jobGroupStatusQuery,
    () => ({
      ...statusOf(group, state),
      queued: willRun(
        state,
        received.map(({ event }) => event),
      ),
    }),
    { description: 'The newest commit, and the current run' },
  );

  const carryOut = async (action: GroupAction): Promise<void> => {
    if (action.kind === 'supersede')
      return await requestEnd(run, { mode: 'stop', stopReason: 'superseded', reason: SUPERSEDED });
    if (action.kind === 'cancel') return await requestEnd(run, cancel);
    const { runNumber, commit } = action;
    run = await start(groupedJobId(group, runNumber), commit, job, (outcome) =>
      received.push({ event: { kind: 'ended', runNumber, outcome } }),
    );
  };

  // Signals without a readable revision fill the gate, too.
  const hasEvents = (): boolean => received.length > 0 || gate.isFull;
  for (;;) {
    if (state.running === undefined) await condition(hasEvents, IDLE_TIMEOUT);
    else await condition(hasEvents);
    if (!hasEvents()) return;
    gate.restart();
    for (const { event, job: asked, cancel: request } of received.splice(0)) {
      const next = step(state, event);
      cancel = request;
      if (next.state.runNumber !== state.runNumber) job = asked;
      ({ state } = next);
      for (const action of next.actions) await carryOut(action);
    }
    if (gate.isFull) {
      await workerActivities('Take in more signals').getTime();
      gate.open();
      if (hasEvents()) continue;
    }
    if (state.queued && (await condition(hasEvents, SETTLED))) continue;
    const next = begin(state);
    ({ state } = next);
    for (const action of next.actions) await carryOut(action);
    // Only the workflow run that started a job receives its end.
    if (state.running === undefined && !hasEvents() && workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof jobGroup>(state);
  }
}

/**
 * Returns the gate for the signals.
 *
 * @param received - receives the events
 */
function revisionGate(received: ReceivedEvent[]): SignalGate {
  const gate = new SignalGate([
    {
      name: jobRevisionSignal.name,
      description: 'A new commit of the change set: {commit, at, job, rerun}',
      take: (body) => {
        received.push(...parseRevision(body));
        return 1;
      },
    },
    {
      name: cancelSignal.name,
      description:
        'Cancel the run, and drop the commit that waits. Body: nothing, a reason, or {reason, mode}',
      take: (body) => {
        received.push({ event: { kind: 'cancelled' }, cancel: parseCancel(body) });
        return 1;
      },
    },
  ]);
  gate.open();
  return gate;
}

/** Parses a revision, which comes from outside. An invalid revision is dropped and logged. */
function parseRevision(body: unknown): ReceivedEvent[] {
  const { commit, at, job, rerun } = isObject(body) ? body : {};
  const atMs = typeof at === 'string' ? Date.parse(at) : Number.NaN;
  if (typeof commit === 'string' && COMMIT.test(commit) && isTime(atMs) && isObject(job)) {
    return [
      {
        event: { kind: 'asked', version: { commit, atMs }, rerun: rerun === true },
        job: job as unknown as JobInput,
      },
    ];
  }
  // Log strings only: a value that cannot be copied to the worker's log would block the workflow
  // permanently.
  log.warn(
    'A commit was skipped: it needs commit (at most 64 letters and digits), at (ISO 8601) and job',
    { at: typeof at === 'string' ? at : undefined },
  );
  return [];
}

/** Reads the request to pass on to the run. Anything unreadable is a plain stop. */
function parseCancel(body: unknown): CancelRequest {
  const { mode, reason } = parseCancelRequest(body as Parameters<typeof parseCancelRequest>[0]);
  return { mode, reason };
}

/**
 * Starts a run. The job workflow validates its own input.
 *
 * @param ended - called once, when the run and all of its pods have ended
 */
async function start(
  workflowId: string,
  commit: string,
  job: JobInput | undefined,
  ended: (outcome: RunnerOutcome) => void,
): Promise<ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined> {
  try {
    const run = await startChild<(input: JobInput) => Promise<JobResult>>(JOB_WORKFLOW, {
      workflowId,
      args: [job as JobInput],
      // The post steps run, whatever happens to the group.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: commit,
    });
    void run.result().then(
      ({ outcome }) => ended(outcome),
      (error: unknown) => ended(withoutVerdict(error)),
    );
    return run;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    log.warn(
      'A workflow with the ID of this run is already running and does not belong to this group',
      { workflowId },
    );
    ended('errored');
    return undefined;
  }
}

/** Returns the outcome of a run without a verdict: it was cancelled, terminated or rejected. */
function withoutVerdict(error: unknown): RunnerOutcome {
  return error instanceof ChildWorkflowFailure && error.cause instanceof CancelledFailure
    ? 'aborted'
    : 'errored';
}

async function requestEnd(
  run: ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined,
  request: CancelRequest | undefined,
): Promise<void> {
  try {
    await run?.signal(cancelSignal, request);
  } catch (error) {
    log.info('The run was not cancelled, because it has ended', {
      run: run?.workflowId,
      why: String(error),
    });
  }
}

function statusOf(
  group: string,
  { runNumber, commit, running, queued, outcome }: GroupState,
): JobGroupStatus {
  return {
    runNumber,
    queued,
    ...omitUndefined({
      commit,
      outcome,
      running: running && {
        workflowId: groupedJobId(group, running.runNumber),
        superseded: running.superseded,
      },
    }),
  };
}
