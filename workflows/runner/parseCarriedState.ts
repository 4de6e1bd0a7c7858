/**
 * Parses the state carried over from the previous run, which anyone who may start a workflow can
 * write. An invalid state is rejected. Times are limited to the current time, so that a wait that
 * counts from one of them is never longer than a wait from now. Pure.
 */
import { RUNNER_PHASES, type RunnerPhase } from '../../core/contract/index.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import { STOP_REASON_BY_CAUSE } from '../../core/domain/cancellation.ts';
import { isCiId } from '../../core/domain/ciId.ts';
import { isCount } from '../../core/domain/isCount.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { MAX_CLOCK_SKEW_MS } from '../../core/domain/podConditions.ts';
import type { CarriedRunnerState, CurrentRunner } from './carriedState.ts';
import { NO_JOBS } from './jobEvents.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Maximum duration of doubt about an idle runner (ms); see `IDLE_IN_DOUBT_MS` (state.ts). */
const MAX_IDLE_IN_DOUBT_MS = 60_000;

const MODES: readonly unknown[] = ['drain', 'stop', 'force'];
const PHASES: readonly unknown[] = RUNNER_PHASES;

const isText = (value: unknown): value is string => typeof value === 'string';
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * Parses a carried state.
 *
 * @param nowMs - current time (ms since the epoch)
 * @returns `undefined` if no run carries over such a state
 */
export function parseCarriedState(raw: unknown, nowMs: number): CarriedRunnerState | undefined {
  if (!isObject(raw)) return undefined;
  const { runnerName, location, attempt, runner, cancel, failure, heard } = raw;
  const current = parseRunner(runner, nowMs);
  if (!isText(runnerName) || !isObject(location) || current === undefined) return undefined;
  if (!isCount(attempt) || attempt === 0) return undefined;
  return {
    runnerName,
    location: location as unknown as CarriedRunnerState['location'],
    createdAtMs: timeOf(raw['createdAtMs'], nowMs) ?? nowMs,
    attempt,
    runner: current,
    phases: listOf(raw['phases']).filter(isPhase),
    replacements: listOf(raw['replacements']).filter(isReplacement),
    unregisterAttempts: countOf(raw['unregisterAttempts']),
    usedJobMs: countOf(raw['usedJobMs']),
    neverStartedInARow: countOf(raw['neverStartedInARow']),
    shortLivedInARow: countOf(raw['shortLivedInARow']),
    notifiedOnline: raw['notifiedOnline'] === true,
    ...omitUndefined({
      notifiedBusy: raw['notifiedBusy'] === true ? (true as const) : undefined,
      cancel: isCancellation(cancel) ? cancel : undefined,
      failure: isFailure(failure) ? failure : undefined,
      heard: isObject(heard) ? parseProgress(heard, nowMs) : undefined,
    }),
  };
}

function parseRunner(runner: unknown, nowMs: number): CarriedRunnerState['runner'] | undefined {
  if (!isObject(runner)) return undefined;
  const { id, pod, jobs, job, busyJobKey, suspected } = runner;
  // Only a run with a pod that has not ended continues as new.
  if (!isLivePod(pod)) return undefined;
  const text = (value: unknown): string | undefined => (isText(value) ? value : undefined);
  const unconfirmedBusyMs = runner['unconfirmedBusyMs'];
  return {
    pod,
    online: runner['online'] === true,
    hadJob: runner['hadJob'] === true,
    jobs: isJobs(jobs) ? limitJobs(jobs, nowMs) : NO_JOBS,
    ...omitUndefined({
      id: isCiId(id) ? id : undefined,
      podBusy: typeof runner['podBusy'] === 'boolean' ? runner['podBusy'] : undefined,
      job: text(job),
      busyJobKey: text(busyJobKey),
      startSeenMs: timeOf(runner['startSeenMs'], nowMs),
      jobConclusion: text(runner['jobConclusion']),
      jobEndedAt: timeOf(runner['jobEndedAt'], nowMs),
      jobFailedAt: timeOf(runner['jobFailedAt'], nowMs),
      busySince: timeOf(runner['busySince'], nowMs),
      idleInDoubtUntilMs: timeOf(runner['idleInDoubtUntilMs'], nowMs + MAX_IDLE_IN_DOUBT_MS),
      jobDeadline: isTime(runner['jobDeadline']) ? runner['jobDeadline'] : undefined,
      unconfirmedBusyMs: isCount(unconfirmedBusyMs) ? unconfirmedBusyMs : undefined,
      suspected: isSuspicion(suspected) ? suspected : undefined,
      failedJob: isFailedJob(runner['failedJob']) ? runner['failedJob'] : undefined,
    }),
  };
}

function isFailedJob(job: unknown): job is NonNullable<CurrentRunner['failedJob']> {
  return isObject(job) && isCiId(job['id']) && isText(job['repository']);
}

/**
 * Whether the value is a pod that has not ended. Its times are strings that are parsed where they
 * are used; an invalid time counts as absent there.
 */
function isLivePod(pod: unknown): pod is PodSnapshot {
  return (
    isObject(pod) &&
    [pod['name'], pod['uid'], pod['createdAt']].every(isText) &&
    pod['ended'] === false &&
    pod['deleted'] === false &&
    typeof pod['scheduled'] === 'boolean' &&
    typeof pod['terminating'] === 'boolean' &&
    ['namespace', 'node', 'startedAt', 'terminationDeadline', 'disruptionReason', 'reason'].every(
      (field) => pod[field] === undefined || isText(pod[field]),
    ) &&
    pod['exit'] === undefined
  );
}

function isJobs(jobs: unknown): jobs is CurrentRunner['jobs'] {
  if (!isObject(jobs)) return false;
  const { running, completed, latestEventAt } = jobs;
  return (
    Array.isArray(completed) &&
    completed.every(isText) &&
    isTime(latestEventAt) &&
    (running === undefined ||
      (isObject(running) &&
        isText(running['key']) &&
        isText(running['label']) &&
        (running['repository'] === undefined || isText(running['repository']))))
  );
}

/** A time of the future would make every later event look overtaken. */
function limitJobs(jobs: CurrentRunner['jobs'], nowMs: number): CurrentRunner['jobs'] {
  return { ...jobs, latestEventAt: Math.min(jobs.latestEventAt, nowMs + MAX_CLOCK_SKEW_MS) };
}

function isSuspicion(value: unknown): value is NonNullable<CurrentRunner['suspected']> {
  return isObject(value) && isText(value['cause']) && isText(value['why']);
}

function isCancellation(value: unknown): value is Cancellation {
  return (
    isObject(value) &&
    MODES.includes(value['mode']) &&
    isText(value['reason']) &&
    isText(value['by']) &&
    Object.hasOwn(STOP_REASON_BY_CAUSE, value['by'])
  );
}

function isFailure(value: unknown): value is NonNullable<CarriedRunnerState['failure']> {
  return (
    isObject(value) &&
    isText(value['message']) &&
    (value['cause'] === undefined || isText(value['cause']))
  );
}

function isPhase(value: unknown): value is CarriedRunnerState['phases'][number] {
  return (
    isObject(value) &&
    PHASES.includes(value['phase'] as RunnerPhase) &&
    isText(value['at']) &&
    !Number.isNaN(Date.parse(value['at']))
  );
}

function isReplacement(value: unknown): value is CarriedRunnerState['replacements'][number] {
  return (
    isObject(value) &&
    ['runnerName', 'cause', 'replacedBy'].every((key) => isText(value[key])) &&
    (value['rerunWorkflowId'] === undefined || isText(value['rerunWorkflowId']))
  );
}

function parseProgress(heard: Fields, nowMs: number): UnregistrationProgress {
  const { absentSinceMs: _absent, unlistedSinceMs: _unlisted, ...said } = heard;
  return {
    ...(said as unknown as UnregistrationProgress),
    ...omitUndefined({
      absentSinceMs: timeOf(heard['absentSinceMs'], nowMs),
      unlistedSinceMs: timeOf(heard['unlistedSinceMs'], nowMs),
    }),
  };
}

function timeOf(value: unknown, nowMs: number): number | undefined {
  return isTime(value) ? Math.min(value, nowMs) : undefined;
}

const countOf = (value: unknown): number => (isCount(value) ? value : 0);
