/** What must hold: of every step, of every state, and of every end. Each says in words what is broken, or nothing. */
import type { WaitKind, ObservedFacts } from '../../workflows/runner/unregisterFacts.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { VerdictDecision } from '../../workflows/runner/verdict.ts';
import type { Mind } from './mind.ts';
import {
  hasJob,
  isCommand,
  isDone,
  isEphemeral,
  isLost,
  isSilent,
  isStatic,
  type State,
} from './state.ts';

/** @returns what is wrong with this step */
export function checkStep(before: State, after: State, mind: Mind): string | undefined {
  const asked =
    (before.told === 'no' && after.told === 'us') ||
    (after.deleted && before.pod === 'running' && after.pod === 'gone' && before.at !== 'over');
  if (asked && hasJob(before) && before.node === 'well') {
    const { cancel } = mind.belief(before);
    const stopped = cancel?.mode === 'stop' || cancel?.mode === 'force';
    // Probes that are later than the life waits for are all that it could have gone by.
    if (
      !before.late &&
      !stopped &&
      !before.expiredWait &&
      !(isCommand(before) && before.failure !== 'none')
    )
      return `a pod was asked to go under a job, and nobody had asked for a stop (${mind.plan(before).action.reason})`;
  }
  return hasJob(before) && before.node === 'well' ? checkDeadline(before, after, mind) : undefined;
}

/** Is it the running job's own deadline by which the life stops its runner? */
function checkDeadline(before: State, after: State, mind: Mind): string | undefined {
  const { cancel: was, runner } = mind.belief(before);
  if (
    was?.by === 'run_timeout' ||
    mind.belief(after).cancel?.by !== 'run_timeout' ||
    after.expiredWait
  )
    return undefined;
  // The keys of jobs begin with their ids: 1 and 2.
  const told = runner.jobs.running?.key.startsWith(before.job === 'A runs' ? '1' : '2') === true;
  return `a job ${told ? '' : 'that no event had told of '}is stopped by a deadline that is not its own`;
}

/** @returns what is wrong with this state, whatever comes next */
export function checkState(state: State, mind: Mind): string | undefined {
  if (state.at === 'over') return checkEnd(state, mind);
  // A cancel may come meanwhile: the verdict follows it.
  if (state.at === 'replacing')
    return mind.belief(state).cancel === undefined ? checkEnd(state, mind) : undefined;
  if (state.at === 'coming up') return checkComingUp(state, mind);
  if (state.at !== 'waiting' && state.at !== 'removing') return undefined;
  const { action, seen, waitMs } = mind.plan(state);
  if (action.kind === 'wait' && (waitMs === undefined || !Number.isFinite(waitMs)))
    return `a wait without an end: ${action.reason}`;
  if (action.kind === 'wait' && !seen.ended) {
    const vain = checkVain(action.until, seen.observedActivity, mind.heard(state).expiredWait);
    if (vain !== undefined) return vain;
  }
  if (action.kind === 'wait' && seen.ended && action.until !== 'listRecheck')
    return `the runner has ended, and the life waits: ${action.reason}`;
  if (seen.ended || seen.stop === undefined) return undefined;
  if (action.kind === 'remove' && seen.stop === 'force')
    return 'the pod was to go at once, and the CI server is asked first';
  return action.kind === 'wait' && action.until !== 'terminated'
    ? `a stop was accepted, and the life waits: ${action.reason}`
    : undefined;
}

/** Is there anything to wait for? The longest waits are for a job that runs, and for a runner of which nothing tells. */
function checkVain(
  until: WaitKind,
  observedActivity: ObservedFacts['observedActivity'],
  expiredWait: WaitKind | undefined,
): string | undefined {
  if (until === 'jobDeadline' && observedActivity !== 'busy')
    return 'the life waits for the end of a job of which nothing tells';
  if (until !== 'settled') return undefined;
  if (observedActivity === 'idle')
    return 'an idle runner has no registration any more, and the life waits for it';
  return expiredWait === 'settled' ? 'what was waited for in vain is waited for again' : undefined;
}

/** Is a deadline of its way up out, and the life still waits? */
function checkComingUp(s: State, mind: Mind): string | undefined {
  const { pod } = mind.belief(s).runner;
  if (pod === undefined || pod.ended) return undefined;
  if (pod.startedAt !== undefined)
    return s.old && pod.online !== true
      ? 'the registration deadline is out, and the life waits'
      : undefined;
  if (s.age === '10 m') return 'the pod has been pending for too long, and the life waits';
  return s.age === '5 m' && !pod.scheduled
    ? 'the pod has been unscheduled for too long, and the life waits'
    : undefined;
}

function checkEnd(s: State, mind: Mind): string | undefined {
  if (s.registration === 'there' && !s.handedOn && !selfRemoves(s))
    return 'the life ended with a registration that nobody holds';
  if (s.pod !== 'gone' && s.pod !== 'none' && !(s.told !== 'no' && !mind.belief(s).runner.pod))
    return 'the life ended with a pod that nobody deletes';
  if (s.cutOff) return undefined;
  return checkVerdict(s, mind);
}

/** The CI server removes an ephemeral runner after its job. */
const selfRemoves = (s: State): boolean =>
  isEphemeral(s) && (isDone(s) || (isLost(s) && s.exit === '0'));

/** Does the verdict fit what has happened in truth? */
function checkVerdict(s: State, mind: Mind): string | undefined {
  const decision = mind.verdict(s);
  const { cancel: asked, fixedCancel, neverStartedInARow } = mind.belief(s);
  const cancel = fixedCancel === undefined ? asked : fixedCancel.cancel;
  const said = decision.kind === 'replace' ? 'replaced' : decision.outcome;
  const { cause } = decision;
  const wrong = (why: string) =>
    `the verdict ${said}${cause === undefined ? '' : `/${cause}`} is wrong: ${why}`;
  // After its end it was too late, unless another runner was to take its place.
  if (
    fixedCancel !== undefined &&
    cancel === undefined &&
    s.at === 'over' &&
    wasLate(decision, asked)
  )
    return isDone(s) &&
      !isStatic(s) &&
      s.exit === '0' &&
      s.told !== 'deleted' &&
      s.told !== 'evicted'
      ? wrong('it had done its job before the cancel')
      : undefined;
  if (cancel !== undefined && cancel.by !== 'drain') {
    // One that crashed took its job with it by its own doing.
    const crashed = s.exit === '1' || s.exit === '137, out of memory';
    const lost = cancel.mode === 'drain' && isLost(s) && !crashed;
    if (said === 'aborted' && cause === cancel.by)
      return lost && wasKnown(s, mind) ? wrong('its job was lost in the drain') : undefined;
    // What was told of a job last may be old; and of a runner that does not tell, or that left no record, nothing may say whether its
    // job was lost.
    const { pod, jobs } = mind.belief(s).runner;
    const unseen = isSilent(s) || pod?.exit?.record === undefined;
    const inDoubt = (isEphemeral(s) && unseen) || jobs.running !== undefined || wasTold(s, mind);
    return (lost || inDoubt) && cancel.mode === 'drain' && said === 'errored'
      ? undefined
      : wrong(`it was cancelled (${cancel.by})`);
  }
  if (said === 'aborted') return wrong('nobody cancelled it');
  if (cancel !== undefined) {
    if (said === 'succeeded' && isLost(s) && wasKnown(s, mind))
      return wrong('its job was lost in the drain');
    return said === 'replaced' ? wrong('it was drained') : undefined;
  }
  if (s.failure !== 'none')
    return isDone(s) || isLost(s) || (said === 'errored' && (cause ?? 'provisioning') === s.failure)
      ? undefined
      : wrong(`it did not come up (${s.failure})`);
  return checkLeftAlone(s, mind, said, cause, wrong, neverStartedInARow);
}

/** Whether a cancel decided that came after the runner's end. */
function wasLate(decision: VerdictDecision, asked: Cancellation | undefined): boolean {
  if (decision.kind !== 'end' || asked === undefined) return false;
  return asked.by === 'drain' || (asked.mode === 'drain' && decision.outcome === 'errored')
    ? decision.message.includes('drain')
    : decision.outcome === 'aborted' && decision.cause === asked.by;
}

/** Has anybody seen that its container started, or heard of a job? What vanishes before that was never there, as far as is known. */
function wasSeen(s: State, mind: Mind): boolean {
  const { pod, hadJob } = mind.belief(s).runner;
  return pod?.startedAt !== undefined || hadJob || wasTold(s, mind);
}

/** The job's loss was told of, or the command's, which is its own job. */
const wasKnown = (s: State, mind: Mind): boolean =>
  isCommand(s)
    ? wasSeen(s, mind)
    : wasTold(s, mind) || mind.belief(s).runner.pod?.exit?.record !== undefined;

/** Of the job that ran at the end somebody has told the life: the pod, an event, or the CI server with a 422. */
function wasTold(s: State, mind: Mind): boolean {
  const { podBusy, jobs } = mind.belief(s).runner;
  // Once the pod was asked to go, its probes fail anyway. An event of a static runner may be an old one.
  if (s.late) return jobs.running !== undefined && !isStatic(s);
  // The keys of jobs begin with their ids: 1 and 2. An event of a static runner's earlier job tells nothing of its last one.
  const told = jobs.running?.key.startsWith(s.job.startsWith('A') ? '1' : '2') === true;
  return (
    podBusy === true ||
    (isStatic(s) ? told : jobs.running !== undefined) ||
    mind.heard(s).removal === 'busy'
  );
}

function checkLeftAlone(
  s: State,
  mind: Mind,
  said: string,
  cause: string | undefined,
  wrong: (why: string) => string,
  neverStartedInARow: number,
): string | undefined {
  const toldByOthers = s.told === 'deleted' || s.told === 'evicted';
  const { runner } = mind.belief(s);
  if (said === 'succeeded' && !isDone(s)) return wrong('no job was done');
  if (said === 'succeeded' && isStatic(s)) return wrong('a static runner has no end of its own');
  if (
    said === 'replaced' &&
    isLost(s) &&
    wasTold(s, mind) &&
    mind.spec(s.setup).onEviction === 'fail'
  )
    return wrong('its job was lost, and may run twice');
  if (
    said === 'errored' &&
    isLost(s) &&
    toldByOthers &&
    wasSeen(s, mind) &&
    mind.spec(s.setup).onEviction === 'replace'
  )
    return wrong('its runner was to be replaced');
  const exit = runner.pod?.exit;
  if (exit?.oomKilled === true && (said !== 'failed' || cause !== 'oom_killed'))
    return wrong('it was out of memory');
  if (!wasSeen(s, mind) && s.pod === 'gone') {
    const expected = neverStartedInARow >= 3 ? 'errored' : 'replaced';
    return said === expected
      ? undefined
      : wrong(`its container never started, ${neverStartedInARow} times before`);
  }
  if (exit?.code === 1 && !toldByOthers && said !== 'failed') return wrong('it exited with 1');
  const byItself = exit?.code === 0 && !s.interrupted && !toldByOthers;
  if (byItself && isDone(s) && runner.hadJob && !isStatic(s) && said !== 'succeeded')
    return wrong('it did its job, and exited with 0');
  if (byItself && !isDone(s) && said !== 'errored') return wrong('it exited with 0 without a job');
  const lostIdle = s.job === 'none' && exit === undefined && !isCommand(s);
  // A missed probe shows an idle runner as busy. One that vanishes then counts as lost with a job.
  const inDoubt = said === 'errored' && wasTold(s, mind);
  if (lostIdle && said !== 'replaced' && !inDoubt) return wrong('it was lost while idle');
  return undefined;
}
