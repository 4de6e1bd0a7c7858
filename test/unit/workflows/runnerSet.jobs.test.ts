import { jobKey } from '../../../core/domain/ciJobState.ts';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JobEvent } from '../../../core/contract/index.ts';
import { applyJobEvent, type JobRecord } from '../../../workflows/runnerSet/jobRecord.ts';
import { MAX_ACTIVE_JOBS, SetJobs } from '../../../workflows/runnerSet/jobs.ts';
import { MAX_TRACES } from '../../../workflows/runnerSet/jobTraces.ts';

const HOUR = 3_600_000;
const RUNNER = 'linux-abcdefghij-0a1b2c3d4e';
const event = (action: JobEvent['action'], more: Partial<JobEvent> = {}): JobEvent => ({
  action,
  jobId: '7',
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['linux'],
  at: 1_000,
  ...more,
});
const queued = event('queued');
const started = event('in_progress', { at: 2_000, runnerName: RUNNER });
const done = event('completed', { at: 3_000, runnerName: RUNNER, conclusion: 'success' });
const anywhere = (): boolean => false;

describe('the final state of a job', () => {
  test.each<[string, JobEvent[], Partial<JobRecord>]>([
    ['in order', [queued, started, done], { state: 'completed', since: 1_000, runnerName: RUNNER }],
    ['queued arrives last', [started, queued], { state: 'assigned', runnerName: RUNNER }],
    ['the end arrives first', [done, queued, started], { state: 'completed', runnerName: RUNNER }],
    [
      'each arrives twice',
      [queued, queued, started, started],
      { state: 'assigned', runnerName: RUNNER },
    ],
    [
      'cancelled before it started: no runner',
      [queued, event('completed', { conclusion: 'cancelled' })],
      { state: 'completed' },
    ],
    [
      'skipped: no other event arrives',
      [event('completed', { conclusion: 'skipped' })],
      { state: 'completed' },
    ],
    [
      'only a late event names the runner',
      [event('completed'), started],
      { state: 'completed', runnerName: RUNNER },
    ],
  ])('%s', (_what, events, expected) => {
    let job: JobRecord | undefined;
    for (const one of events) job = applyJobEvent(job, one, 5_000);
    expect(job).toMatchObject(expected);
  });

  test('the state is independent of order and repetition of events', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([queued, started, done, queued, started, done], { minLength: 1 }),
        (events) => {
          let job: JobRecord | undefined;
          for (const one of events) job = applyJobEvent(job, one, 5_000);
          const open = events.includes(started) ? 'assigned' : 'queued';
          expect(job?.state).toBe(events.includes(done) ? 'completed' : open);
        },
      ),
    );
  });

  test('an event without new information changes nothing', () => {
    const job = applyJobEvent(undefined, started, 1);
    expect(applyJobEvent(job, queued, 2)).toBe(job);
  });
});

describe('all jobs of a set', () => {
  const trace = (id: number): string =>
    `00-${String(id).padStart(32, '0')}-${String(id).padStart(16, '0')}-01`;
  const traced = (jobId: number): JobEvent => ({
    action: 'queued',
    jobId: String(jobId),
    runAttempt: 1,
    repository: 'acme/app',
    labels: [],
    at: jobId,
    traceparent: trace(jobId),
  });

  test('the next runners to start get the traces of the oldest queued jobs, each once, also in the next run', () => {
    const jobs = new SetJobs('linux');
    for (const id of [1, 2, 3, 4, 5]) jobs.applyEvent(traced(id), 1_000);
    jobs.applyEvent({ ...traced(1), action: 'in_progress', runnerName: 'x' }, 1_000); // a foreign runner was faster
    expect(jobs.traces.take(2)).toEqual([trace(2), trace(3)]);
    jobs.applyEvent(traced(2), 1_001); // its delivery is sent again
    const next = new SetJobs('linux', jobs.carry());
    expect([next.traces.take(9), next.traces.take(9)]).toEqual([[trace(4), trace(5)], []]);
    expect(next.carry()).not.toHaveProperty('traces');
  });

  test('no runner gets the trace of a rerouted job', () => {
    const jobs = new SetJobs('linux');
    for (const id of [1, 2]) jobs.applyEvent(traced(id), 1_000);
    jobs.reroute('1/1', 'set-other', 1_000);
    expect(jobs.traces.take(9)).toEqual([trace(2)]);
  });

  test('the number of kept traces is limited, and invalid ones are dropped', () => {
    const jobs = new SetJobs('linux');
    jobs.applyEvent(
      { ...traced(9_999), traceparent: `${trace(9_999)}-${'x'.repeat(1_000)}` },
      1_000,
    );
    for (let id = 1; id <= MAX_TRACES + 10; id++) jobs.applyEvent(traced(id), 1_000);
    const kept = jobs.traces.take(9_999);
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([MAX_TRACES, trace(1), trace(MAX_TRACES)]);
  });

  test('another attempt is another job, and each is released once', () => {
    const jobs = new SetJobs('linux');
    for (const one of [queued, event('queued', { runAttempt: 2 }), done, done, queued])
      jobs.applyEvent(one, 1);
    expect(jobs.count(anywhere)).toEqual({ queued: 1, running: 0 });
    expect(jobs).toMatchObject({ startedTotal: 1, completedTotal: 1 });
  });

  test('a job on a foreign runner or a draining runner does not count', () => {
    const jobs = new SetJobs('linux');
    for (const [jobId, runnerName] of [
      [1, 'mac-abcdefghij-0a1b2c3d4e'],
      [2, RUNNER],
      [3, undefined],
    ] as const)
      jobs.applyEvent(
        {
          ...started,
          jobId: String(jobId),
          ...(runnerName === undefined ? { runnerName: '' } : { runnerName }),
        },
        1,
      );
    expect(jobs.count(anywhere)).toEqual({ queued: 0, running: 2 });
    expect(jobs.count((workflowId) => workflowId === 'runner-linux-abcdefghij')).toEqual({
      queued: 0,
      running: 1,
    });
  });

  test('the end of a runner ends the jobs of each of its names, and a name belongs to one runner', () => {
    const jobs = new SetJobs('linux');
    for (const [jobId, runnerName] of [
      [1, RUNNER],
      [2, `${RUNNER}-r2`],
      [3, 'linux-bcdefghijk-0a1b2c3d4e'],
    ] as const)
      jobs.applyEvent({ ...started, jobId: String(jobId), runnerName }, 1);
    expect([RUNNER, `${RUNNER}-r3`].map((name) => jobs.runningOn(name))).toEqual([true, false]);
    expect([
      jobs.runnerEnded('runner-linux-abcdefghij', 2),
      jobs.runnerEnded('runner-linux-abcdefghij', 2),
    ]).toEqual([true, false]);
    expect({
      ...jobs.count(anywhere),
      over: jobs.completedTotal,
      left: jobs.runningOn(RUNNER),
    }).toEqual({ queued: 0, running: 1, over: 2, left: false });
  });

  const listed = { id: '7', runAttempt: 1, repository: 'acme/app', labels: [], queuedAt: 1_000 };
  test.each([
    [
      'a queued job without an event is found',
      [],
      [{ ...listed, status: 'queued' as const }],
      true,
      { queued: 1, running: 0 },
    ],
    [
      'a running job without an event is found',
      [],
      [{ ...listed, status: 'in_progress' as const, startedAt: 2_000, runnerName: RUNNER }],
      true,
      { queued: 0, running: 1 },
    ],
    [
      'a job that started during the check stays started',
      [queued, started],
      [{ ...listed, status: 'queued' as const }],
      true,
      { queued: 0, running: 1 },
    ],
    ['an unlisted job is no longer queued', [queued], [], true, { queued: 0, running: 0 }],
    [
      'an unlisted job is no longer running',
      [queued, started],
      [],
      true,
      { queued: 0, running: 0 },
    ],
    [
      'an unlisted job stays queued if the check is incomplete',
      [queued],
      [],
      false,
      { queued: 1, running: 0 },
    ],
  ])('a queue check: %s', (_what, events, seen, complete, expected) => {
    const jobs = new SetJobs('linux');
    for (const one of events) jobs.applyEvent(one, 1_000);
    jobs.applyQueueCheck({ jobs: seen, complete }, 60_000, 60_500);
    expect(jobs.count(anywhere)).toEqual(expected);
  });

  test('a job that an earlier part of the check listed stays queued', () => {
    const jobs = new SetJobs('linux');
    jobs.applyEvent(queued, 1_000);
    jobs.applyEvent({ ...queued, jobId: '8' }, 1_000);
    jobs.applyQueueCheck({ jobs: [], complete: true, listed: [jobKey(queued)] }, 60_000, 60_500);
    expect([jobs.count(anywhere).queued, jobs.get(queued)?.state]).toEqual([1, 'queued']);
  });

  test('a check that started before the event, or shortly after it, does not override it', () => {
    const jobs = new SetJobs('linux');
    jobs.applyEvent(queued, 60_000);
    jobs.applyQueueCheck({ jobs: [], complete: true }, 65_000, 66_000);
    expect(jobs.count(anywhere)).toEqual({ queued: 1, running: 0 });
  });

  test('a job that had left and was queued again is found by the next check', () => {
    const jobs = new SetJobs('linux');
    jobs.applyEvent(queued, 1_000);
    jobs.applyQueueCheck({ jobs: [], complete: true }, 60_000, 60_500);
    jobs.applyQueueCheck(
      { jobs: [{ ...listed, status: 'queued' }], complete: true },
      120_000,
      120_500,
    );
    expect({ ...jobs.count(anywhere), confirmed: jobs.confirmedSince(120_000) }).toEqual({
      queued: 1,
      running: 0,
      confirmed: 1,
    });
  });

  test('a job is dropped when its CI server cannot have it any more', () => {
    const jobs = new SetJobs('linux');
    jobs.limits = { queuedMs: HOUR, runningMs: 2 * HOUR };
    jobs.applyEvent({ ...queued, jobId: '1' }, 0);
    jobs.applyEvent({ ...started, jobId: '2' }, 0);
    const counts = [HOUR - 1, HOUR, 2 * HOUR - 1, 2 * HOUR].map((now) => {
      jobs.drop(now);
      return jobs.count(anywhere);
    });
    expect(counts).toEqual([
      { queued: 1, running: 1 },
      { queued: 0, running: 1 },
      { queued: 0, running: 1 },
      { queued: 0, running: 0 },
    ]);
  });

  test('after 100,000 jobs with three events each the number of records is within the limits', () => {
    const jobs = new SetJobs('linux');
    for (let jobId = 0; jobId < 100_000; jobId++)
      for (const one of [queued, started, done])
        jobs.applyEvent({ ...one, jobId: String(jobId) }, jobId * 100);
    expect(jobs.size.active).toBe(0);
    expect(jobs.size.completed).toBeLessThanOrEqual(20_000);
    expect(JSON.stringify(jobs.carry()).length).toBeLessThan(500_000);
    expect(jobs.completedTotal).toBe(100_000);
    jobs.drop(100_000 * 100 + 7 * HOUR);
    expect(jobs.size.completed).toBe(0);
  });

  test('the maximum number of queued jobs fits into the state that continue-as-new carries over', () => {
    const jobs = new SetJobs('linux');
    for (let jobId = 0; jobId < MAX_ACTIVE_JOBS + 5; jobId++)
      jobs.applyEvent(
        { ...queued, jobId: String(40_000_000_000 + jobId), at: 1_800_000_000_000 },
        1_800_000_000_000,
      );
    expect(jobs.size.active).toBe(MAX_ACTIVE_JOBS);
    const carried = JSON.stringify(jobs.carry());
    expect(carried.length).toBeLessThan(1_000_000);
    expect(new SetJobs('linux', JSON.parse(carried)).carry()).toEqual(jobs.carry());
  });

  test('a repeated event of a dropped job is recognized by its time, also in the next run', () => {
    const at = 10 * HOUR;
    const jobs = new SetJobs('linux');
    for (const one of [queued, started, done]) jobs.applyEvent({ ...one, at }, at);
    expect(jobs.isOlderThanHistory({ ...queued, at })).toBe(false); // it is known to be over
    jobs.drop(at + 7 * HOUR);
    const next = new SetJobs('linux', JSON.parse(JSON.stringify(jobs.carry())));
    for (const one of [jobs, next]) {
      for (const event of [queued, started, done])
        expect(one.isOlderThanHistory({ ...event, at })).toBe(true);
      expect(one.isOlderThanHistory({ ...queued, jobId: '8', at: at + 1 })).toBe(false); // that one cannot have been over
    }
    next.applyEvent({ ...queued, jobId: '9', at }, at + 7 * HOUR); // a look found it
    expect(next.isOlderThanHistory({ ...started, jobId: '9', at })).toBe(false);
    next.drop(at + 32 * HOUR);
    expect(next.isOlderThanHistory({ ...queued, jobId: '9', at })).toBe(true);
  });

  test.each<[string, (jobs: SetJobs) => void]>([
    ['an event', (jobs) => void jobs.applyEvent({ ...queued, at: 250e12 }, HOUR)],
    [
      'a look',
      (jobs) => {
        const { repository, labels } = queued;
        const job = { id: '7', runAttempt: 1, repository, labels, status: 'queued' as const };
        jobs.applyQueueCheck({ jobs: [{ ...job, queuedAt: 250e12 }], complete: true }, HOUR, HOUR);
      },
    ],
  ])('%s with a time in the future does not hide later events', (_what, tell) => {
    const jobs = new SetJobs('linux');
    tell(jobs);
    expect(jobs.get(queued)?.since).toBe(HOUR);
    jobs.drop(200 * HOUR);
    expect(jobs.size.active).toBe(0);
    expect(jobs.isOlderThanHistory({ ...queued, jobId: '8', at: 200 * HOUR })).toBe(false);
    expect(jobs.isOlderThanHistory({ ...queued, at: HOUR })).toBe(true);
  });

  test('jobs without an end event are dropped when GitHub must have ended them', () => {
    const jobs = new SetJobs('linux');
    jobs.applyEvent(queued, 0);
    jobs.applyEvent({ ...started, jobId: '8' }, 0);
    jobs.drop(25 * HOUR);
    expect(jobs.count(anywhere)).toEqual({ queued: 0, running: 1 });
    jobs.drop(121 * HOUR);
    expect(jobs.size.active).toBe(0);
  });
});
