/**
 * Parses the signals about jobs that a set receives. Anyone who may send a signal can send any
 * body. Invalid events are dropped, because a body that the set cannot process would block the set
 * permanently. Pure.
 */
import type { JobEvent, QueueCheckResult, RunnerVersionStatus } from '../../core/contract/index.ts';
import { parseCiId } from '../../core/domain/ciId.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/**
 * Maximum length of a text (characters). All texts are carried over by continue-as-new, and no CI
 * server has names this long.
 */
const MAX_TEXT = 1_000;
const ACTIONS: readonly unknown[] = [
  'queued',
  'in_progress',
  'completed',
] satisfies JobEvent['action'][];
const STATES: readonly unknown[] = ['queued', 'in_progress'] satisfies CiJob['status'][];

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_TEXT;
const isOptional = (is: (value: unknown) => boolean, value: unknown): boolean =>
  value === undefined || is(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Parses the events of a signal. `at` is the time at which the signal was sent (ms since the
 * epoch), if the body contains it.
 */
export function parseJobEvents(body: unknown): {
  readonly events: JobEvent[];
  readonly at?: number;
} {
  const { events, at } = isObject(body) ? body : {};
  return {
    events: listOf(events).flatMap((event) => readJobEvent(event) ?? []),
    ...(isTime(at) ? { at } : {}),
  };
}

function readJobEvent(event: unknown): JobEvent | undefined {
  if (!isObject(event)) return undefined;
  const jobId = parseCiId(event['jobId']);
  if (jobId === undefined || !isJobEvent(event)) return undefined;
  return withRunId({ ...event, jobId });
}

/** Parses the ID of the workflow run. An invalid one is dropped, and the job still counts. */
function withRunId<T extends { readonly runId?: string }>(job: T): T {
  const { runId, ...rest } = job;
  return { ...rest, ...omitUndefined({ runId: parseCiId(runId) }) } as T;
}

function isJobEvent(event: Record<string, unknown>): event is JobEvent & typeof event {
  const { action, runAttempt, repository, at, runnerName, reroutedBy, traceparent } = event;
  return (
    ACTIONS.includes(action) &&
    Number.isSafeInteger(runAttempt) &&
    isText(repository) &&
    isTime(at) &&
    [runnerName, reroutedBy, traceparent].every((text) => isOptional(isText, text))
  );
}

/**
 * Parses the result of a queue check. A result with an invalid job counts as incomplete.
 *
 * @returns `undefined` if the body is not a result
 */
export function parseQueueCheckResult(body: unknown): QueueCheckResult | undefined {
  if (!isObject(body)) return undefined;
  const { checkedAt, jobs, complete, listed, absent, endedSets, budgetUntil } = body;
  if (!isTime(checkedAt) || !Array.isArray(jobs)) return undefined;
  const read = jobs.flatMap((job) => readCiJob(job) ?? []);
  return {
    checkedAt,
    jobs: read,
    complete: complete === true && read.length === jobs.length,
    ...(body['continues'] === true ? { continues: true } : {}),
    ...(body['unsupported'] === true ? { unsupported: true } : {}),
    ...(isTime(budgetUntil) ? { budgetUntil } : {}),
    ...(Array.isArray(listed) ? { listed: listed.filter(isText) } : {}),
    absent: listOf(absent).filter(isText),
    endedSets: listOf(endedSets).filter(isText),
  };
}

/** ISO 8601 times in the form that workers write. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/;
/** Maximum length of a version (characters). */
const MAX_VERSION = 50;

/**
 * Parses the body of a signal with a runner version.
 * @returns `undefined` if it is invalid
 */
export function parseRunnerVersion(
  body: unknown,
): (RunnerVersionStatus & { at: number }) | undefined {
  if (!isObject(body)) return undefined;
  const { at, version, jobsUntil, registrationUntil } = body;
  const isDate = (time: unknown): boolean => isText(time) && ISO_TIME.test(time);
  if (
    !isTime(at) ||
    !isText(version) ||
    version.length > MAX_VERSION ||
    ![jobsUntil, registrationUntil].every((time) => isOptional(isDate, time))
  )
    return undefined;
  return {
    at,
    version,
    ...(isText(jobsUntil) ? { jobsUntil } : {}),
    ...(isText(registrationUntil) ? { registrationUntil } : {}),
  };
}

function readCiJob(job: unknown): CiJob | undefined {
  if (!isObject(job)) return undefined;
  const id = parseCiId(job['id']);
  if (id === undefined || !isCiJob(job)) return undefined;
  return withRunId({ ...job, id });
}

function isCiJob(job: Record<string, unknown>): job is CiJob & typeof job {
  const { runAttempt, repository, labels, status, queuedAt, startedAt, runnerName } = job;
  return (
    Number.isSafeInteger(runAttempt) &&
    isText(repository) &&
    listOf(labels).every(isText) &&
    STATES.includes(status) &&
    isTime(queuedAt) &&
    isOptional(isTime, startedAt) &&
    isOptional(isText, runnerName)
  );
}
