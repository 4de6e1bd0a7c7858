/** What a set is told of jobs. Whoever may send a signal can send anything: what is no news is left out, because what a set cannot read would stop it for good. Pure. */
import type { JobEvent, QueueCheckResult } from '../../core/contract/index.ts';
import { parseCiId } from '../../core/domain/ciId.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { isObject } from '../../core/domain/isObject.ts';

/** All of it is carried on, and no CI server has names so long. */
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

/** Years 1970 to 9999: others have no ISO 8601 text. */
const isTime = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value < 253_402_300_800_000;

/** The events of a signal. `at`: when it was sent, if it says so. */
export function parseJobEvents(body: unknown): {
  readonly events: JobEvent[];
  readonly at?: number;
} {
  const { events, at } = isObject(body) ? body : {};
  return {
    events: listOf(events).flatMap((event) => readJobEvent(event) ?? []),
    ...(typeof at === 'number' && Number.isFinite(at) ? { at } : {}),
  };
}

function readJobEvent(event: unknown): JobEvent | undefined {
  if (!isObject(event)) return undefined;
  const jobId = parseCiId(event['jobId']);
  return jobId !== undefined && isJobEvent(event) ? { ...event, jobId } : undefined;
}

function isJobEvent(event: Record<string, unknown>): event is JobEvent & typeof event {
  const { action, runAttempt, repository, at, runnerName, reroutedBy, traceparent } = event;
  return (
    ACTIONS.includes(action) &&
    Number.isSafeInteger(runAttempt) &&
    isText(repository) &&
    Number.isFinite(at) &&
    [runnerName, reroutedBy, traceparent].every((text) => isOptional(isText, text))
  );
}

/** @returns `undefined`: it is no look. One of which something cannot be read is not complete */
export function parseQueueCheckResult(body: unknown): QueueCheckResult | undefined {
  if (!isObject(body)) return undefined;
  const { checkedAt, jobs, complete, listed, absent, endedSets, budgetUntil } = body;
  if (typeof checkedAt !== 'number' || !Number.isFinite(checkedAt) || !Array.isArray(jobs))
    return undefined;
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

function readCiJob(job: unknown): CiJob | undefined {
  if (!isObject(job)) return undefined;
  const id = parseCiId(job['id']);
  return id !== undefined && isCiJob(job) ? { ...job, id } : undefined;
}

function isCiJob(job: Record<string, unknown>): job is CiJob & typeof job {
  const { runAttempt, repository, labels, status, queuedAt, startedAt, runnerName } = job;
  return (
    Number.isSafeInteger(runAttempt) &&
    isText(repository) &&
    listOf(labels).every(isText) &&
    STATES.includes(status) &&
    Number.isFinite(queuedAt) &&
    isOptional(Number.isFinite, startedAt) &&
    isOptional(isText, runnerName)
  );
}
