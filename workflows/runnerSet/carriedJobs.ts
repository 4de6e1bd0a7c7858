/** Compact form of a set's jobs for continue-as-new. Pure. */
import type { CiJobState } from '../../core/domain/ciJobState.ts';
import { limitTime } from '../../core/domain/isTime.ts';
import { decodeName, decodeNumber, encodeName, encodeNumber, trimRecord } from './compact.ts';
import type { JobRecord } from './jobRecord.ts';

/** Key of a job: the job's number if it is one and its attempt is the first. */
type CarriedKey = string | number;

/** Job that has not completed. */
type CarriedJob = readonly [
  key: CarriedKey,
  /** Index of the state, times two, plus one if another set has rerouted the job to this one. */
  state?: number,
  /** `updatedAt` minus that of the previous job. */
  updated?: number,
  /** `updatedAt` minus `since`. */
  age?: number,
  /** Index of the repository in `names`. */
  repository?: number,
  runnerName?: string,
  /** `confirmedAt`, relative to `updatedAt`. */
  confirmed?: number,
  /** 1 plus the index of the set that the job was rerouted to. */
  reroutedTo?: number,
  /** ID of the workflow run. If it is a number: minus that of the previous job. */
  run?: CarriedKey,
];

/** Jobs of a set in the compact form for continue-as-new. */
export interface CarriedJobs {
  readonly active: readonly CarriedJob[];
  /** Repositories and sets. */
  readonly names: readonly string[];
  /** Keys of completed jobs, by the minute of their end (minutes since the epoch). */
  readonly completed: readonly (readonly [number, readonly CarriedKey[]])[];
  readonly droppedUntil?: number;
  /** Keys, each with its `traceparent`. */
  readonly traces?: readonly (readonly [string, string])[];
  readonly startedTotal: number;
  readonly completedTotal: number;
}

const STATES: readonly CiJobState[] = ['queued', 'left', 'assigned', 'completed'];
const FIRST_ATTEMPT = /^([1-9]\d{0,14})\/1$/;
const WHOLE_NUMBER = /^[1-9]\d{0,14}$/;
const MINUTE_MS = 60_000;

/** Encodes the jobs that have not completed, and the names that they refer to. */
export function encodeJobs(
  set: string,
  jobs: ReadonlyMap<string, JobRecord>,
): Pick<CarriedJobs, 'active' | 'names'> {
  const names = new Map<string, number>();
  const indexOf = (name: string): number =>
    names.get(name) ?? (names.set(name, names.size), names.size - 1);
  let before = 0;
  const runs = new CarriedRunIds();
  const active = Array.from(jobs, ([key, job]): CarriedJob => {
    const { state, since, updatedAt, repository, reroutedTo, runId } = job;
    const updated = updatedAt - before;
    before = updatedAt;
    return trimRecord([
      encodeKey(key),
      STATES.indexOf(state) * 2 + (job.reroutedHere === true ? 1 : 0),
      updated,
      updatedAt - since,
      indexOf(repository),
      encodeName(`${set}-`, job.runnerName),
      encodeNumber(updatedAt, job.confirmedAt),
      reroutedTo === undefined ? 0 : indexOf(reroutedTo) + 1,
      runs.encode(runId),
    ]);
  });
  return { active, names: [...names.keys()] };
}

/**
 * Decodes the jobs of {@link encodeJobs}, in their order.
 * @param now - latest plausible time (ms since the epoch)
 */
export function decodeJobs(
  set: string,
  { active, names }: Pick<CarriedJobs, 'active' | 'names'>,
  now: number,
): [string, JobRecord][] {
  let updatedAt = 0;
  const runs = new CarriedRunIds();
  return active.map((job) => {
    const [key, state = 0, updated = 0, age = 0, repository = 0, runner = ''] = job;
    const [confirmed = 0, reroutedTo = 0, run = 0] = job.slice(6) as [
      number?,
      number?,
      CarriedKey?,
    ];
    updatedAt += updated;
    const runnerName = decodeName(`${set}-`, runner);
    const runId = runs.decode(run);
    const confirmedAt = decodeNumber(updatedAt, confirmed);
    const record: JobRecord = {
      state: STATES[state >> 1] ?? 'queued',
      since: limitTime(updatedAt - age, now),
      updatedAt: limitTime(updatedAt, now),
      repository: names[repository] ?? '',
      ...(runnerName === undefined ? {} : { runnerName }),
      ...(confirmedAt === undefined ? {} : { confirmedAt: limitTime(confirmedAt, now) }),
      ...(reroutedTo === 0 ? {} : { reroutedTo: names[reroutedTo - 1] ?? '' }),
      ...(runId === undefined ? {} : { runId }),
      ...(state % 2 === 0 ? {} : { reroutedHere: true as const }),
    };
    return [decodeKey(key), record];
  });
}

/** Encodes the keys of completed jobs, with the times of their ends (ms since the epoch). */
export function encodeCompleted(over: ReadonlyMap<string, number>): CarriedJobs['completed'] {
  const byMinute = new Map<number, CarriedKey[]>();
  for (const [key, at] of over) {
    const minute = Math.ceil(at / MINUTE_MS);
    const keys = byMinute.get(minute) ?? [];
    byMinute.set(minute, keys);
    keys.push(encodeKey(key));
  }
  return [...byMinute];
}

/**
 * Decodes the keys of {@link encodeCompleted}. Their times are rounded up.
 * @param now - latest plausible time (ms since the epoch)
 */
export function decodeCompleted(
  completed: CarriedJobs['completed'],
  now: number,
): [string, number][] {
  return completed.flatMap(([minute, keys]) => {
    const at = limitTime(minute * MINUTE_MS, now + MINUTE_MS);
    return keys.map((key): [string, number] => [decodeKey(key), at]);
  });
}

/**
 * Encoder of the IDs of workflow runs in the order of their jobs. Jobs that were created together
 * have similar IDs.
 */
class CarriedRunIds {
  #before = 0;

  encode(runId: string | undefined): CarriedKey {
    if (runId === undefined) return 0;
    if (!WHOLE_NUMBER.test(runId)) return runId;
    const encoded = encodeNumber(this.#before, Number(runId));
    this.#before = Number(runId);
    return encoded;
  }

  decode(run: CarriedKey): string | undefined {
    if (typeof run === 'string') return run;
    const id = decodeNumber(this.#before, run);
    this.#before = id ?? this.#before;
    return id?.toString();
  }
}

function encodeKey(key: string): CarriedKey {
  const [, id] = FIRST_ATTEMPT.exec(key) ?? [];
  return id === undefined ? key : Number(id);
}

function decodeKey(key: CarriedKey): string {
  return typeof key === 'number' ? `${key}/1` : key;
}
