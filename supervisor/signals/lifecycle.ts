import type { SupervisorAction, EndRecord } from './actions.ts';
import { formatDuration } from '../settings/duration.ts';
import type { StoppingSignal, SupervisorEvent, TimerName } from './events.ts';
import {
  type ChildEnd,
  type ExitStatus,
  exitCodeOf,
  exitStatusOf,
  EXIT_NOT_RUN,
} from '../process/exitStatus.ts';
import type { StopPolicy } from './stopPolicy.ts';
import { type StopReason, allowsJobToFinish } from '../../core/domain/pod.ts';

/**
 * Phase of the lifecycle.
 *
 * - `starting`: until the child is running
 * - `draining`: the child may finish
 * - `stopping`: the child has received its signal, and its grace period is running
 * - `killing`: the grace period has expired, and the child's end is not known
 * - `recording`: the child has ended, and its end is being recorded. This precedes the killing
 *   of remaining processes, which may take longer than there is time
 * - `sweeping`: the remaining processes are being killed
 * - `cleaning`: the cleanup command is running
 * - `done`: the supervisor exits
 */
export type Phase =
  | 'starting'
  | 'running'
  | 'draining'
  | 'stopping'
  | 'killing'
  | 'recording'
  | 'sweeping'
  | 'cleaning'
  | 'done';

/** State of the supervisor's lifecycle. */
export interface LifecycleState {
  readonly phase: Phase;
  /** Reason for the stop. `null` if the command is not being stopped. */
  readonly reason: StopReason | null;
  /** Stop reason that was written to the supervisor's stop reason source. */
  readonly stated?: StopReason;
  /** Whether the command exceeded its timeout. */
  readonly timedOut: boolean;
  /** End of the child process. Set once it was reaped. */
  readonly end?: ChildEnd;
  /** Exit status of the supervisor. Set together with the verdict. */
  readonly status?: ExitStatus;
  readonly verdict?: EndRecord;
}

/** Next state of the lifecycle, and the actions to execute. */
export interface Transition {
  readonly state: LifecycleState;
  readonly actions: readonly SupervisorAction[];
}

/** State before the command is started. */
export const INITIAL_STATE: LifecycleState = { phase: 'starting', reason: null, timedOut: false };

/** Minimum time for the records, even if no time for cleanup was given (ms). */
const MIN_CLEANUP_MS = 1000;
/**
 * Maximum additional time for the records of a command that ended by itself (ms). A disk that is
 * slow for seconds must not cost a successful step its SHARED_DIR.
 */
const MAX_UNUSED_GRACE_MS = 30_000;

/** Go's names of the signals, which Prow's log lines use. */
const SIGNAL_WORDS: Readonly<Record<StoppingSignal, string>> = {
  SIGTERM: 'terminated',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGHUP: 'hangup',
};

/**
 * Returns the next state of the lifecycle and the actions to execute after an event. Pure. The
 * table is docs/supervisor.md.
 */
export function step(state: LifecycleState, event: SupervisorEvent, plan: StopPolicy): Transition {
  switch (event.kind) {
    case 'ready':
      return state.phase === 'starting' ? { state, actions: [{ kind: 'spawn' }] } : stay(state);
    case 'startFailed':
      if (state.phase !== 'starting') return stay(state);
      return then(
        [error(`Could not start the process: ${event.message}`)],
        finish(state, { kind: 'code', code: EXIT_NOT_RUN }, plan, event.message),
      );
    case 'spawned':
      if (state.phase !== 'starting') return stay(state);
      return {
        state: { ...state, phase: 'running' },
        actions: plan.timeoutMs === undefined ? [] : [timer('timeout', plan.timeoutMs)],
      };
    case 'stated':
      return onStopReasonStated({ ...state, stated: event.reason }, event.reason, plan);
    case 'stopSignal':
      return onStopSignal(state, event, plan);
    case 'otherSignal':
      return running(state)
        ? { state, actions: [{ kind: 'signalChild', signal: event.signal }] }
        : stay(state);
    case 'timer':
      return onTimer(state, event.name, plan);
    case 'jobEnded':
      return state.phase === 'draining'
        ? stop(state, 'SIGTERM', drainReason(state), plan)
        : stay(state);
    case 'childExited':
      return onChildExited(state, event.end, plan);
    case 'groupEmpty':
      if (state.phase !== 'stopping') return stay(state);
      return then(
        [
          error(
            `Process gracefully exited before ${formatDuration(plan.signalTimeoutMs)} grace period`,
          ),
        ],
        ended(state, plan),
      );
    case 'swept':
      return onSwept(state, plan);
    case 'recorded':
      return onRecorded(state);
    case 'cleanupEnded':
      return state.phase === 'cleaning' ? exit(state) : stay(state);
  }
}

/**
 * Handles a stated reason. A reason that does not let the job finish is an order to stop, whether
 * it arrives before the signal, after it (a drain is cut short) or without it. The party that stops
 * the pod may wait with the signal until this is done.
 */
function onStopReasonStated(
  state: LifecycleState,
  reason: StopReason,
  plan: StopPolicy,
): Transition {
  if (!running(state) || allowsJobToFinish(reason)) return stay(state);
  const line =
    state.phase === 'draining'
      ? `Process may not finish any more: ${reason}`
      : `stopping the process: ${reason}`;
  return then([{ kind: 'log', level: 'info', msg: line }], stop(state, 'SIGTERM', reason, plan));
}

function onStopSignal(
  state: LifecycleState,
  event: SupervisorEvent & { kind: 'stopSignal' },
  plan: StopPolicy,
): Transition {
  const { signal } = event;
  const line = `Entrypoint received interrupt: ${SIGNAL_WORDS[signal]}`;
  const reason = state.stated ?? reasonFromSignal(signal, plan);
  switch (state.phase) {
    case 'starting':
      return then(
        [error(line)],
        finish({ ...state, reason }, exitStatusOf({ code: null, signal }), plan),
      );
    case 'running':
      if (mayDrain(event, state.stated, plan))
        return then([error(line)], drain(state, reason, plan));
      return then([error(line)], stop(state, signal, reason, plan));
    case 'draining':
      // No signal has been forwarded yet. A signal of another kind requests more than the current
      // drain.
      if (signal !== 'SIGTERM')
        return then([error(line)], stop(state, signal, drainReason(state), plan));
      return { state, actions: [error(`${line} (already draining)`)] };
    case 'stopping':
    case 'killing':
      return { state, actions: [error(`${line} (already stopping, not passed on)`)] };
    case 'sweeping':
    case 'recording':
    case 'cleaning':
    case 'done':
      return { state, actions: [error(`${line} (the process has ended already)`)] };
  }
}

function onTimer(state: LifecycleState, name: TimerName, plan: StopPolicy): Transition {
  switch (name) {
    case 'timeout':
      if (!running(state)) return stay(state);
      return then(
        [error(`Process did not finish before ${formatDuration(plan.timeoutMs ?? 0)} timeout`)],
        stop({ ...state, timedOut: true }, 'SIGINT', 'timeout', plan),
      );
    case 'drain':
      if (state.phase !== 'draining') return stay(state);
      return then(
        [
          error(
            `Process did not finish before ${formatDuration(plan.drainTimeoutMs)} drain timeout`,
          ),
        ],
        stop(state, 'SIGTERM', drainReason(state), plan),
      );
    case 'grace':
      if (state.phase !== 'stopping') return stay(state);
      return then(
        [error(`Process did not exit before ${formatDuration(plan.signalTimeoutMs)} grace period`)],
        state.end === undefined ? sweep(state, 'killing') : ended(state, plan),
      );
    case 'half':
      return state.phase === 'stopping'
        ? { state, actions: [sendStop('SIGTERM', 'earlier')] }
        : stay(state);
    case 'cleanup':
      return state.phase === 'cleaning' ? then([cleanupOverrun(plan)], exit(state)) : stay(state);
    case 'deadMan':
      return onDeadMan(state, plan);
    default: {
      const next = plan.stopSignals[Number(name.slice('signal'.length))];
      return state.phase === 'stopping' && next !== undefined
        ? { state, actions: [{ kind: 'sendStop', signal: next.signal, to: plan.signalTarget }] }
        : stay(state);
    }
  }
}

function onChildExited(state: LifecycleState, end: ChildEnd, plan: StopPolicy): Transition {
  const reaped = { ...state, end };
  switch (state.phase) {
    case 'running':
    case 'draining':
      // The child ended by itself, possibly during a drain. Its remaining processes get no grace
      // period, as in any container.
      return then(
        [timer('deadMan', unusedBudgetMs(plan))],
        ended({ ...reaped, reason: null }, plan),
      );
    case 'stopping':
      // `sh -c "…"` ends immediately at its signal, while the program that it started is still
      // saving its work: the process group keeps the grace period. If only the command was
      // signalled, it may not have forwarded the signal. It has ended now, so the signal to the
      // group disturbs nothing.
      return {
        state: reaped,
        actions: [
          ...(tellsLater(plan) ? [sendStop('SIGTERM', 'group')] : []),
          { kind: 'awaitGroup' },
        ],
      };
    case 'killing':
      return ended(reaped, plan);
    case 'starting':
    case 'sweeping':
    case 'recording':
    case 'cleaning':
    case 'done':
      return stay(reaped);
  }
}

function onRecorded(state: LifecycleState): Transition {
  if (state.phase !== 'recording') return stay(state);
  return state.end === undefined ? exit(state) : sweep(state, 'sweeping');
}

function onSwept(state: LifecycleState, plan: StopPolicy): Transition {
  // SIGKILL has been sent to the child. A child that cannot end (stuck in the kernel) is left to
  // the dead-man's switch.
  if (state.phase === 'killing') return { state, actions: [{ kind: 'sweep' }] };
  if (state.phase !== 'sweeping') return stay(state);
  if (!plan.cleanup || state.verdict === undefined) return exit(state);
  return {
    state: { ...state, phase: 'cleaning' },
    actions: [timer('cleanup', plan.cleanupTimeoutMs), { kind: 'cleanup', verdict: state.verdict }],
  };
}

function onDeadMan(state: LifecycleState, plan: StopPolicy): Transition {
  const status =
    state.status ??
    (state.timedOut
      ? { kind: 'code' as const, code: EXIT_NOT_RUN }
      : exitStatusOf(state.end ?? { code: null, signal: 'SIGKILL' }));
  const verdict: EndRecord = state.verdict ?? {
    exitCode: exitCodeOf(status),
    signal: state.end?.signal ?? null,
    reason: state.reason,
  };
  const unrecorded = ['sweeping', 'cleaning', 'done'].includes(state.phase)
    ? {}
    : { unrecorded: verdict };
  const line =
    state.phase === 'cleaning'
      ? cleanupOverrun(plan)
      : error(
          state.end === undefined
            ? 'Could not kill process after grace period'
            : 'Could not finish before the end of the budget',
        );
  return {
    state: { ...state, phase: 'done', status, verdict },
    actions: [line, { kind: 'abandon', status, ...unrecorded }],
  };
}

/** Starts a stop. This is the only place where a stop begins: time zero of the grace budget. */
function stop(
  state: LifecycleState,
  received: NodeJS.Signals,
  reason: StopReason,
  plan: StopPolicy,
): Transition {
  const [first, ...more] = plan.stopSignals;
  return {
    state: { ...state, phase: 'stopping', reason },
    actions: [
      { kind: 'stopTimers', except: [] },
      { kind: 'tellReason', reason },
      { kind: 'sendStop', signal: first?.signal ?? received, to: plan.signalTarget },
      ...more.map((next, index) => timer(`signal${index + 1}`, next.afterMs)),
      ...(tellsLater(plan) ? [timer('half', Math.floor(plan.signalTimeoutMs / 2))] : []),
      timer('grace', plan.signalTimeoutMs),
      timer('deadMan', plan.signalTimeoutMs + leastCleanupMs(plan)),
    ],
  };
}

function drain(state: LifecycleState, reason: StopReason, plan: StopPolicy): Transition {
  return {
    state: { ...state, phase: 'draining', reason },
    actions: [
      {
        kind: 'log',
        level: 'info',
        msg: `Process may finish within ${formatDuration(plan.drainTimeoutMs)} drain timeout`,
      },
      { kind: 'tellReason', reason },
      timer('drain', plan.drainTimeoutMs),
      timer('deadMan', plan.drainTimeoutMs + plan.signalTimeoutMs + leastCleanupMs(plan)),
    ],
  };
}

function sweep(state: LifecycleState, phase: 'sweeping' | 'killing'): Transition {
  return {
    state: { ...state, phase },
    actions: [{ kind: 'stopTimers', except: ['deadMan'] }, { kind: 'sweep' }],
  };
}

/** Ends the command's run, after the child has ended and none of its processes gets more time. */
function ended(state: LifecycleState, plan: StopPolicy): Transition {
  const reason =
    state.reason === null || state.timedOut ? state.reason : (state.stated ?? state.reason);
  const status: ExitStatus = state.timedOut
    ? { kind: 'code', code: EXIT_NOT_RUN }
    : exitStatusOf(state.end ?? { code: null, signal: null });
  return then(
    [{ kind: 'stopTimers', except: ['deadMan'] }],
    finish({ ...state, reason }, status, plan),
  );
}

/**
 * Ends the command.
 * @param failed - reason why the command could not be started
 */
function finish(
  state: LifecycleState,
  status: ExitStatus,
  plan: StopPolicy,
  failed?: string,
): Transition {
  const verdict: EndRecord = {
    exitCode: exitCodeOf(status),
    signal: state.end?.signal ?? null,
    reason: state.reason,
    ...(failed === undefined ? {} : { error: failed }),
  };
  const record: SupervisorAction = { kind: 'record', verdict };
  // Without a child no earlier event has started this timer.
  const actions =
    state.end === undefined ? [timer('deadMan', leastCleanupMs(plan)), record] : [record];
  return { state: { ...state, phase: 'recording', status, verdict }, actions };
}

function exit(state: LifecycleState): Transition {
  const status = state.status ?? { kind: 'code' as const, code: EXIT_NOT_RUN };
  return {
    state: { ...state, phase: 'done' },
    actions: [
      { kind: 'stopTimers', except: ['deadMan'] },
      { kind: 'exit', status },
    ],
  };
}

/**
 * Returns the reason if none was stated. A pod that checkpoints is never marked as cancelled; a
 * drain is reported as drained.
 */
function reasonFromSignal(signal: StoppingSignal, plan: StopPolicy): StopReason {
  if (signal !== 'SIGTERM') return 'cancelled';
  if (plan.onTerm === 'checkpoint') return 'evicted';
  return plan.onTerm === 'drain' ? 'drained' : 'cancelled';
}

function mayDrain(
  { signal, idle }: SupervisorEvent & { kind: 'stopSignal' },
  stated: StopReason | undefined,
  plan: StopPolicy,
): boolean {
  if (signal !== 'SIGTERM' || plan.onTerm !== 'drain' || plan.drainTimeoutMs <= 0 || idle)
    return false;
  return stated === undefined || allowsJobToFinish(stated);
}

const drainReason = ({ stated, reason }: LifecycleState): StopReason =>
  stated ?? reason ?? 'drained';

/**
 * Whether the processes that the command started are signalled later than the command itself: if
 * the command handles the stop first, and no sequence of signals is configured.
 */
const tellsLater = ({ signalTarget, stopSignals }: StopPolicy): boolean =>
  signalTarget === 'process' && stopSignals.length === 0;
const sendStop = (
  signal: NodeJS.Signals,
  to: (SupervisorAction & { kind: 'sendStop' })['to'],
): SupervisorAction => ({ kind: 'sendStop', signal, to });
const running = (state: LifecycleState): boolean =>
  state.phase === 'running' || state.phase === 'draining';
const leastCleanupMs = (plan: StopPolicy): number =>
  Math.max(plan.cleanupTimeoutMs, MIN_CLEANUP_MS);
/**
 * Time for the records after a command that ended by itself: no signal has used the grace period,
 * so a SIGTERM from now on still finds the supervisor within the budget.
 */
const unusedBudgetMs = (plan: StopPolicy): number =>
  Math.min(plan.signalTimeoutMs, MAX_UNUSED_GRACE_MS) + leastCleanupMs(plan);
const cleanupOverrun = (plan: StopPolicy): SupervisorAction =>
  error(`Cleanup did not finish before ${formatDuration(plan.cleanupTimeoutMs)} cleanup timeout`);
const error = (msg: string): SupervisorAction => ({ kind: 'log', level: 'error', msg });
const timer = (name: TimerName, ms: number): SupervisorAction => ({ kind: 'startTimer', name, ms });
const stay = (state: LifecycleState): Transition => ({ state, actions: [] });
const then = (first: readonly SupervisorAction[], { state, actions }: Transition): Transition => ({
  state,
  actions: [...first, ...actions],
});
