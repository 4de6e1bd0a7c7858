/**
 * The unregistration: the activities and waits of workflows/runner/unregister.ts, one by one, and
 * the responses of the CI server.
 */
import { STARTED_MS } from './podViews.ts';
import { probeResult } from './podTransitions.ts';
import type { State } from './state.ts';
import { step, type Transition } from './transition.ts';
import type { Decision, WorkflowModel } from './workflowModel.ts';
import {
  applyEvent,
  deletePod,
  knowsPod,
  observePod,
  recordDeadlineJob,
  tearDown,
  timeOutJob,
  withUpdate,
} from './workflowTask.ts';

type RemovalResult = 'removed' | 'absent' | 'unlisted' | 'busy';

/** A response of the CI server to a removal, and its effect. */
interface RemovalResponse {
  readonly result: RemovalResult;
  readonly effect: Partial<State>;
}

/** Name of each response in traces. */
const RESPONSES: Readonly<Record<string, RemovalResult>> = {
  'removed (204)': 'removed',
  'not found (404)': 'absent',
  'not in its lists': 'unlisted',
  'busy (422)': 'busy',
};

/** Maximum age of a list of the CI server after a wait for it (ms). */
const LIST_AGE_MS = 60_000;

/** Returns the responses to a removal that are possible now. */
function possibleResponses(s: State, workflow: WorkflowModel): readonly RemovalResponse[] {
  const response = (result: RemovalResult, effect: Partial<State> = {}): RemovalResponse => ({
    result,
    effect,
  });
  const isIdKnown = workflow.knowledge(s).runner.id !== undefined;
  if (s.registration !== 'registered') return [response(isIdKnown ? 'absent' : 'unlisted')];
  const unlisted = s.justRegistered && !isIdKnown ? [response('unlisted')] : [];
  const removed = response('removed', { registration: 'removed' });
  const busy = [response('busy'), ...(s.jobJustStarted ? [removed] : [])];
  return [...unlisted, ...(s.ciBusy ? busy : [removed])];
}

const possibleResponse = (
  s: State,
  workflow: WorkflowModel,
  result: RemovalResult,
): RemovalResponse | undefined =>
  possibleResponses(s, workflow).find((response) => response.result === result);

/** Applies a response that the workflow receives. */
function receiveResponse(
  s: State,
  workflow: WorkflowModel,
  result: RemovalResult,
): State | undefined {
  const { action, facts } = workflow.decision(s);
  const response = possibleResponse(s, workflow, result);
  if (response === undefined || action.kind !== 'remove') return undefined;
  if (result === 'busy' && action.onBusy === 'retry')
    return s.cancellingRemoval || s.removalRetried ? undefined : { ...s, removalRetried: true };
  const known =
    s.registration === 'registered' && (result === 'removed' || result === 'busy')
      ? withUpdate(s, workflow, { kind: 'idFound' })
      : s;
  const updated =
    result === 'busy' && !facts.ended
      ? recordDeadlineJob(known, withUpdate(known, workflow, { kind: 'rejectedAsBusy' }), workflow)
      : known;
  const { unlistedSinceMs = STARTED_MS, expiredWait } = workflow.progress(s);
  return applyEvent({ ...updated, ...response.effect }, workflow, {
    kind: 'answered',
    answer: result,
    retried: s.removalRetried,
    atMs: unlistedSinceMs + (expiredWait === 'listRecheck' ? LIST_AGE_MS : 0),
    listMaxAgeMs: LIST_AGE_MS,
  });
}

const RESPONDING: readonly Transition[] = Object.entries(RESPONSES).flatMap(([name, result]) => [
  step(
    'fair',
    `the CI server responds to the removal: ${name}`,
    'removing registration',
    (s, workflow) => receiveResponse(s, workflow, result),
  ),
  ...(result === 'busy'
    ? []
    : [
        step(
          'fault',
          `the CI server handles the removal (${name}), and the response is lost with its worker`,
          'removing registration',
          (s, workflow) => {
            const response = possibleResponse(s, workflow, result);
            return response === undefined || s.removalRetried
              ? undefined
              : { ...s, ...response.effect, removalRetried: true };
          },
        ),
      ]),
]);

/** Stops the removal at the job deadline. */
function timeOutDuringRemoval(s: State, workflow: WorkflowModel): State | undefined {
  const { facts, action } = workflow.decision(s);
  const hasDeadline = workflow.knowledge(s).runner.jobDeadline !== undefined;
  if (facts.ended || facts.stop !== undefined || s.cancellingRemoval) return undefined;
  if (s.jobJustStarted || s.justRegistered) return undefined;
  if (!hasDeadline && !(action.kind === 'remove' && action.onBusy === 'retry')) return undefined;
  const timedOut = timeOutJob(s, workflow);
  return applyEvent(hasDeadline ? timedOut : { ...timedOut, jobTimeUsed: true }, workflow, {
    kind: 'removalCancelled',
  });
}

const REMOVING: readonly Transition[] = [
  ...RESPONDING,
  step('fair', 'the removal is cancelled', 'removing registration', (s, workflow) =>
    s.cancellingRemoval ? applyEvent(s, workflow, { kind: 'removalCancelled' }) : undefined,
  ),
  step('fault', 'the removal fails without a retry', 'removing registration', (s, workflow) =>
    s.cancellingRemoval ? undefined : applyEvent(s, workflow, { kind: 'failed' }),
  ),
  step(
    'timeout',
    'the CI server has not responded in time (stopResponseTimeout)',
    'removing registration',
    (s, workflow) => {
      const { facts } = workflow.decision(s);
      return facts.stop !== undefined && !facts.ended && !s.cancellingRemoval
        ? applyEvent(s, workflow, { kind: 'expiredWait', wait: 'stopResponse' })
        : undefined;
    },
  ),
  step(
    'timeout',
    'the job deadline has passed during the removal',
    'removing registration',
    timeOutDuringRemoval,
  ),
];

/**
 * Whether the condition of a deletion is not met: the container has started, or is busy. The API
 * server rejects the deletion of a pod that has changed since it was read.
 */
function isDeletionRejected(s: State, workflow: WorkflowModel): boolean {
  const { action } = workflow.decision(s);
  if (s.deletedBy !== 'none') return false;
  if (action.kind === 'tearDown' && action.unlessBusy === true)
    return s.pod === 'ended' || (s.pod === 'running' && s.published === 'busy');
  return 'unlessStarted' in action && (s.pod === 'running' || (s.pod === 'ended' && s.started));
}

function deleteOrStop(s: State, workflow: WorkflowModel): State | undefined {
  const { action } = workflow.decision(s);
  if (isDeletionRejected(s, workflow)) {
    const observed = observePod(s, workflow, 'observed', 'warm');
    return applyEvent(recordDeadlineJob(s, observed, workflow), workflow, { kind: 'changed' });
  }
  if (action.kind === 'tearDown') return tearDown({ ...s, ...deletePod(s) }, workflow);
  if (action.kind !== 'stopPod') return undefined;
  const requested = knowsPod(s, workflow)
    ? { ...s, ...deletePod(s, { force: action.overdue }) }
    : s;
  const observed =
    requested.pod === 'gone' && knowsPod(s, workflow)
      ? observePod(requested, workflow, 'observed', 'warm')
      : requested;
  return applyEvent(observed, workflow, { kind: 'stopped', mode: action.mode });
}

/** Whether the kubelet has not published the current result of the probes yet. */
const isUnpublished = (s: State): boolean =>
  s.pod === 'running' && s.node === 'ready' && s.published !== probeResult(s);

const POD_CALLS: readonly Transition[] = [
  step('fair', 'the API server deletes the pod', 'deleting pod', deleteOrStop),
  step(
    'fault',
    'the API server deletes the pod, and the response is lost',
    'deleting pod',
    (s, workflow) => {
      const { action } = workflow.decision(s);
      const isForced = action.kind === 'stopPod' && action.overdue;
      return s.deletedBy !== 'none' ||
        isForced ||
        isDeletionRejected(s, workflow) ||
        !knowsPod(s, workflow)
        ? undefined
        : { ...s, ...deletePod(s), deleteRequested: s.deleteRequested };
    },
  ),
  ...(['warm', 'cold'] as const).map((cache) =>
    step(
      cache === 'warm' ? 'fair' : 'fault',
      cache === 'warm' ? 'the pod is read' : 'the pod is read by a worker that has just started',
      'refreshing pod',
      (s, workflow) => {
        const observed = knowsPod(s, workflow)
          ? recordDeadlineJob(s, observePod(s, workflow, 'observed', cache), workflow)
          : s;
        // More than a minute after the event the kubelet has published the probes, except after the
        // fault that it publishes them late.
        const isOutdated = s.jobJustStarted || (isUnpublished(s) && !s.probesLate);
        return applyEvent(
          isOutdated ? observed : withUpdate(observed, workflow, { kind: 'confirmedIdle' }),
          workflow,
          { kind: 'podRefreshed' },
        );
      },
    ),
  ),
];

type WaitedFor = Extract<Decision['action'], { kind: 'wait' }>['until'] | 'nothing';

const waitedFor = (s: State, workflow: WorkflowModel): WaitedFor => {
  const { action } = workflow.decision(s);
  return action.kind === 'wait' ? action.until : 'nothing';
};

/** Waits that expire only if an expected event does not come. */
const LONG_WAITS: ReadonlySet<WaitedFor> = new Set(['settled', 'terminated', 'jobDeadline']);

/**
 * Lets a wait expire. The fair transitions that are faster than the wait must come before.
 * @param options.beforePublication - whether it may expire before the kubelet publishes the probes
 */
function expireWait(
  s: State,
  workflow: WorkflowModel,
  { beforePublication = false }: { readonly beforePublication?: boolean } = {},
): State | undefined {
  const until = waitedFor(s, workflow);
  if (until === 'nothing' || !Number.isFinite(workflow.decision(s).waitMs)) return undefined;
  const runs = s.pod === 'running' && s.node === 'ready';
  if (until === 'idleConfirmed' && !beforePublication && isUnpublished(s)) return undefined;
  if (until === 'terminated' && runs) return undefined;
  const isShort = until === 'idleConfirmed' || until === 'absentCheck';
  if (!isShort && (s.jobJustStarted || s.justRegistered)) return undefined;
  const { online, jobDeadline } = workflow.knowledge(s).runner;
  const isJobTimeUsed = until === 'jobDeadline' || (until === 'settled' && online);
  const waited = isJobTimeUsed ? { ...s, jobTimeUsed: true } : s;
  const expired =
    until === 'jobDeadline' && jobDeadline !== undefined ? timeOutJob(s, workflow) : waited;
  return applyEvent(expired, workflow, { kind: 'expiredWait', wait: until });
}

const WAITING: readonly Transition[] = [
  step('fair', 'the wait expires', 'waiting', (s, workflow) =>
    LONG_WAITS.has(waitedFor(s, workflow)) ? undefined : expireWait(s, workflow),
  ),
  // The node is under load, or was disconnected for a short time.
  step('fault', 'the probes are published later than idleConfirmation', 'waiting', (s, workflow) =>
    waitedFor(s, workflow) === 'idleConfirmed' && isUnpublished(s)
      ? expireWait({ ...s, probesLate: true }, workflow, { beforePublication: true })
      : undefined,
  ),
  step('timeout', 'the long wait expires', 'waiting', (s, workflow) =>
    LONG_WAITS.has(waitedFor(s, workflow)) ? expireWait(s, workflow) : undefined,
  ),
];

/** All transitions of an unregistration. */
export const UNREGISTRATION_TRANSITIONS: readonly Transition[] = [
  ...REMOVING,
  ...POD_CALLS,
  ...WAITING,
];
