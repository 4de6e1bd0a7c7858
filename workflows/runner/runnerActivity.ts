/**
 * Idle and busy periods of the current runner: how job events and the reports of its pod change
 * them.
 */
import type { PodStateEvent, RunnerJobEvent } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { stateAgeMs } from '../../core/domain/podConditions.ts';
import {
  backstopMs,
  maxDurationDeadlineMs,
  remainingJobMs,
  type TimedRunner,
} from './jobDeadline.ts';
import { concernsRunner, limitEventTime, trackJobEvent } from './jobEvents.ts';

/**
 * Minimum time between the start of a busy period and the start of a job for the job to be a
 * different one (ms). Clocks and probes differ by a few seconds only.
 */
const ANOTHER_JOB_MS = 60_000;

/**
 * Time to wait before a static runner's pod that still reports idle is trusted over a job event
 * (ms). The pod needs this time to show the job and the workflow to receive it. Earlier reports of
 * the pod may be outdated.
 */
const IDLE_IN_DOUBT_MS = 60_000;

/**
 * Minimum time by which a job of an ephemeral runner started before the end of its known job, to be
 * the same job (ms). Clocks and probes differ by a few seconds only.
 */
const SAME_JOB_MS = 10_000;

/** State of a runner workflow whose current runner is idle or busy. */
interface ActiveRunner extends TimedRunner {
  /** Name of the current runner at the CI server. */
  readonly runnerName: string;
  /** Whether the current runner is known to have ended. */
  readonly hasEnded: boolean;
}

/**
 * Applies a job event from the CI server, which is an early hint. Events about other runners and
 * events without new information change nothing.
 */
export function onJobEvent(state: ActiveRunner, received: RunnerJobEvent): void {
  const { runner, spec } = state;
  const event = limitEventTime(received, Date.now());
  if (!concernsRunner(event, state.runnerName, runner.id, spec.scope)) return;
  const { running } = runner.jobs;
  const tracked = trackJobEvent(runner.jobs, event);
  if (tracked === runner.jobs) return;
  // When a runner's end interrupts its job, the CI server reports the job as completed once it
  // has noticed. Keep the job as running, because it did not complete by itself.
  const jobs =
    state.hasEnded && event.action === 'completed' && event.conclusion !== 'success'
      ? { ...tracked, ...omitUndefined({ running }) }
      : tracked;
  if (jobs.running === undefined) delete runner.idleInDoubtUntilMs;
  else if (jobs.running.key !== running?.key && !spec.ephemeral)
    runner.idleInDoubtUntilMs = Date.now() + IDLE_IN_DOUBT_MS;
  // A completed event that overtakes its own in_progress event, or arrives late, still proves
  // that a job ran.
  Object.assign(runner, { jobs, online: true, hadJob: true });
  delete runner.unconfirmedBusyMs;
  if (spec.ephemeral && event.action === 'completed' && event.conclusion !== undefined)
    runner.jobConclusion = event.conclusion;
  if (
    event.action === 'completed' &&
    event.conclusion !== undefined &&
    event.conclusion !== 'success'
  ) {
    runner.jobFailedAt = Date.now();
    const { jobId: id, repository } = event;
    if (repository === undefined) delete runner.failedJob;
    else runner.failedJob = { id, repository };
  }
  // Events may be late. If the pod reports its state itself, an event does not make the runner
  // busy, unless the runner is ephemeral: then the event can only be about its one job.
  if (jobs.running !== undefined) takeAnotherJob(state);
  if (jobs.running !== undefined && (runner.podBusy === undefined || spec.ephemeral))
    setBusy(state);
  else if (jobs.running === undefined && runner.podBusy !== true) setIdle(state);
  assignJob(state, event.at);
  const isKnownJob = running !== undefined || runner.podBusy !== true;
  if (event.action === 'completed' && jobs.running === undefined && isKnownJob) expectExit(state);
}

/**
 * Limits the time of an ephemeral runner whose only job has ended. Its process may hang, and then
 * neither exits nor takes another job.
 */
function expectExit(state: ActiveRunner): void {
  const { runner, spec } = state;
  if (!spec.ephemeral || state.hasEnded || runner.jobEndedAt !== undefined) return;
  setBusy(state);
  runner.jobEndedAt = Date.now();
  runner.jobDeadline = Math.min(
    runner.jobDeadline ?? Number.POSITIVE_INFINITY,
    runner.jobEndedAt + spec.timeouts.exitMs,
  );
}

/**
 * Gives an ephemeral runner the time of a job again, if a job starts although one has ended: a job
 * can be cancelled between its assignment to the runner and its start.
 */
function takeAnotherJob(state: ActiveRunner): void {
  const { runner } = state;
  if (runner.jobEndedAt === undefined || state.hasEnded) return;
  delete runner.jobEndedAt;
  delete runner.jobConclusion;
  startJob(state);
}

/**
 * Applies an idle or busy report from the pod. A report that arrives after the end of the runner
 * is outdated and changes nothing.
 */
export function onPodState(
  state: ActiveRunner,
  { uid, state: podState, newJob, durationMs }: PodStateEvent,
): void {
  const { runner } = state;
  if (runner.pod === undefined || uid !== runner.pod.uid || state.hasEnded) return;
  if (newJob === true) applyPodState(state, 'idle');
  applyPodState(state, podState, stateAgeMs(durationMs));
}

/**
 * Applies what the runner's pod reports, from whichever source.
 *
 * @param forMs - how long this state has lasted (ms)
 */
export function applyPodState(
  state: ActiveRunner,
  podState: PodStateEvent['state'],
  forMs = 0,
): void {
  const { runner } = state;
  // The pod's report of a short job may arrive after the CI server's event of its end.
  const isEndedJob = Date.now() - forMs < (runner.jobEndedAt ?? 0) - SAME_JOB_MS;
  if (podState === 'busy' && runner.podBusy === false && !isEndedJob) takeAnotherJob(state);
  runner.podBusy = podState === 'busy';
  if (podState === 'busy') setBusy(state, forMs);
  else setIdle(state);
  assignJob(state);
  if (podState === 'idle' && runner.jobs.running === undefined && runner.jobs.completed.length > 0)
    expectExit(state);
}

/**
 * Clears the doubt about an idle runner after a live read of its pod. A read that finds the
 * runner ended shows nothing about its last moments, so the doubt remains.
 *
 * @param askedAtMs - start of the live read (ms since the epoch)
 */
export function confirmIdle(state: ActiveRunner, askedAtMs: number): void {
  const { runner } = state;
  if (state.hasEnded) return;
  if (runner.podBusy === false && askedAtMs >= (runner.idleInDoubtUntilMs ?? 0))
    delete runner.idleInDoubtUntilMs;
}

/**
 * Handles a CI server response that calls a running runner busy: it came online and took a job.
 * The job's time starts now, unless an earlier event reported the job.
 */
export function onRejectedAsBusy(state: ActiveRunner): void {
  state.runner.hadJob = true;
  setBusy(state);
}

/** Marks a plain command as busy. The command is its own job. */
export function commandStarted(state: ActiveRunner): void {
  applyPodState(state, 'busy');
}

function setBusy(state: ActiveRunner, forMs = 0): void {
  state.runner.online = true;
  if (state.runner.busySince === undefined) startJob(state, forMs);
}

function startJob(state: ActiveRunner, forMs = 0): void {
  const { runner, spec } = state;
  runner.busySince = Date.now() - forMs;
  runner.jobDeadline = Math.min(
    runner.busySince +
      Math.min(spec.timeouts.jobTimeoutMs, remainingJobMs(state)) +
      backstopMs(state),
    maxDurationDeadlineMs(state),
  );
  delete runner.busyJobKey;
}

/**
 * Assigns the running job to the current busy period. A job must not be stopped at the deadline
 * of the previous job, even if no idle state was observed between the two.
 *
 * @param toldMs - time of the event that reports the job, by the CI server's clock (ms since the
 * epoch)
 */
function assignJob(state: ActiveRunner, toldMs = 0): void {
  const { runner, spec } = state;
  const { running } = runner.jobs;
  if (runner.busySince === undefined) return;
  const isAnother =
    runner.busyJobKey === undefined
      ? toldMs - runner.busySince > ANOTHER_JOB_MS
      : runner.busyJobKey !== running?.key;
  if (isAnother && !spec.ephemeral) startJob(state);
  if (running !== undefined) Object.assign(runner, { busyJobKey: running.key, job: running.label });
}

function setIdle(state: ActiveRunner): void {
  const { runner, spec } = state;
  // An ephemeral runner does not become idle after its job, so the job's deadline stays until the
  // runner ends. An ephemeral runner without any job was marked busy by mistake.
  if (spec.ephemeral && runner.hadJob) return;
  if (runner.busySince !== undefined && runner.busyJobKey === undefined)
    runner.unconfirmedBusyMs = (runner.unconfirmedBusyMs ?? 0) + Date.now() - runner.busySince;
  delete runner.busySince;
  delete runner.busyJobKey;
  delete runner.jobDeadline;
  delete runner.job;
}

/**
 * Whether a static runner has been busy for as long as one job may take, according to its pod
 * alone. Processes that a job left behind can report busy intermittently and indefinitely. The
 * runner is replaced when it is idle, so that no job is affected.
 */
export function isSuspect(state: Pick<ActiveRunner, 'runner' | 'spec'>): boolean {
  const { ephemeral, pod } = state.spec;
  return !ephemeral && (state.runner.unconfirmedBusyMs ?? 0) >= pod.jobTimeoutCapMs;
}
