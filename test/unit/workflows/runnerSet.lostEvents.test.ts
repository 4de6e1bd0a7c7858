/**
 * Jobs whose events are lost, late, or in another order, in one set and the CI server's queue, with a simulated clock. The test counts jobs and runners.
 * One of each kind runs on Temporal in test/temporal/runnerSetDemand.test.ts.
 */
import { describe, expect, test } from '@jest/globals';
import type { JobEvent, RunnerSetInput } from '../../../core/contract/index.ts';
import type { CiJob } from '../../../core/domain/ciServer.ts';
import { SetModel } from '../../support/setModel.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const TICK = 15 * SECOND;
const JOBS = 12;
/** Time between two queued jobs. */
const EVERY = 2 * MINUTE;
const JOB_LASTS = 3 * MINUTE;

interface Walk {
  /** Delay of an event by the time at which it was sent (ms since the start); `Infinity` if it never arrives. @default at once */
  readonly arrives?: (event: JobEvent, sentAt: number) => number;
  /** Whether queue checks have a response at that time. @default yes */
  readonly answers?: (at: number) => boolean;
  /** Whether the set does not run at that time, so that events of its runners are lost. @default never */
  readonly isDown?: (at: number) => boolean;
  /** Time after which these jobs are cancelled if they are still queued. */
  readonly cancelled?: { readonly jobs: (index: number) => boolean; readonly afterMs: number };
  /** Time after which a job is approved, and thereby queued. */
  readonly approvedAfterMs?: number;
  /** Jobs that are rerun after their end, with another attempt. */
  readonly reruns?: (index: number) => boolean;
  readonly input?: Partial<RunnerSetInput>;
}

interface WalkResult {
  /** Completed jobs, one entry for each attempt. */
  ran: number;
  cancelled: number;
  /** Total number of started runners. */
  started: number;
  /** Longest time that a job waited for its runner, in ms. */
  longestWait: number;
  /** Remaining at the end: runners, known runners, jobs that the set counts as queued or running. */
  left: { runners: number; known: number; queued: number; running: number };
}

function walk(how: Walk, renews: boolean): WalkResult {
  const begin = 1_000_000;
  const down = (): boolean => how.isDown?.(model.now - begin) ?? false;
  const input: RunnerSetInput = {
    name: 'linux',
    minIdle: 0,
    max: 20,
    template: { organization: 'acme' },
    ...how.input,
  };
  const model: SetModel = new SetModel(input, () => model !== undefined && down());
  model.renews = renews;
  model.look = () =>
    how.answers?.(model.now - begin) === false ? undefined : { jobs: listed(), complete: true };
  const queuedAt = new Map<number, number>();
  const startedAt = new Map<number, number>();
  const attempts = new Map<number, number>();
  const post: { event: JobEvent; at: number }[] = [];
  const result: WalkResult = {
    ran: 0,
    cancelled: 0,
    started: 0,
    longestWait: 0,
    left: { runners: 0, known: 0, queued: 0, running: 0 },
  };
  let made = 0;

  const attempt = (id: number): number => attempts.get(id) ?? 1;
  const listed = (): CiJob[] => [
    ...model.queue.map((id): CiJob => ({
      id: String(id),
      runAttempt: attempt(id),
      repository: 'acme/app',
      labels: [],
      status: 'queued',
      queuedAt: queuedAt.get(id) ?? 0,
    })),
    ...[...model.runners.values()].flatMap(({ job, name }): CiJob[] =>
      job === undefined
        ? []
        : [
            {
              id: String(job),
              runAttempt: attempt(job),
              repository: 'acme/app',
              labels: [],
              status: 'in_progress',
              queuedAt: queuedAt.get(job) ?? 0,
              startedAt: model.now,
              runnerName: name,
            },
          ],
    ),
  ];
  /** Schedules the delivery of the events that the model has sent. */
  const collect = (): void => {
    for (const sent of model.mail.splice(0)) {
      const event = { ...sent, runAttempt: attempt(Number(sent.jobId)) };
      const after = how.arrives?.(event, model.now - begin) ?? 0;
      if (Number.isFinite(after)) post.push({ event, at: model.now + after });
    }
  };
  const queue = (id?: number): void => {
    if (id === undefined) model.queueJob();
    else {
      model.queue.push(id);
      model.mail.push({
        action: 'queued',
        jobId: String(id),
        runAttempt: attempt(id),
        repository: 'acme/app',
        labels: [],
        at: model.now,
      });
    }
    queuedAt.set(id ?? made, model.now);
  };

  const LASTS = 8 * HOUR;
  for (let at = 0; at < LASTS; at += TICK) {
    while (made < JOBS && at >= made * EVERY + (how.approvedAfterMs ?? 0)) {
      made++;
      queue();
    }
    for (const id of model.queue.slice()) {
      const { cancelled } = how;
      if (
        cancelled === undefined ||
        !cancelled.jobs(id) ||
        model.now - (queuedAt.get(id) ?? 0) < cancelled.afterMs
      )
        continue;
      model.queue.splice(model.queue.indexOf(id), 1);
      model.mail.push({
        action: 'completed',
        jobId: String(id),
        runAttempt: attempt(id),
        repository: 'acme/app',
        labels: [],
        at: model.now,
        conclusion: 'cancelled',
      });
      result.cancelled++;
    }
    for (const runner of model.runners.values()) {
      if (runner.job !== undefined && model.now - (startedAt.get(runner.job) ?? 0) >= JOB_LASTS) {
        const { job } = runner;
        model.finishJob(runner);
        result.ran++;
        if (how.reruns?.(job) === true && attempt(job) === 1) {
          collect(); // of the attempt that is over
          attempts.set(job, 2);
          queue(job);
        }
      }
      if (runner.phase === 'Idle') {
        model.takeJob(runner);
        const { job } = runner;
        if (job !== undefined) {
          startedAt.set(job, model.now);
          result.longestWait = Math.max(result.longestWait, model.now - (queuedAt.get(job) ?? 0));
        }
      }
      model.comeOnline(runner);
    }
    collect();
    const isDown = down();
    if (!isDown)
      for (const { event } of post.filter((one) => one.at <= model.now)) model.deliver(event);
    if (!isDown) post.splice(0, post.length, ...post.filter((one) => one.at > model.now));
    if (isDown) model.now += TICK;
    else model.step(TICK);
  }
  const demand = model.state.demand();
  return {
    ...result,
    started: model.sent.start,
    left: { runners: model.count(), known: model.state.runners.all().length, ...demand },
  };
}

const never = (): number => Infinity;
const action =
  (...lost: JobEvent['action'][]) =>
  (event: JobEvent): number =>
    lost.includes(event.action) ? Infinity : 0;
const between =
  (from: number, to: number) =>
  (at: number): boolean =>
    at >= from && at < to;
const HOUR_DOWN = between(5 * MINUTE, 65 * MINUTE);

interface Expected {
  readonly ran?: number;
  readonly cancelled?: number;
  /** Exactly this many runners, or at most `startedAtMost`. */
  readonly started?: number;
  readonly startedAtMost?: number;
  /** Upper limit of the longest wait, in ms. */
  readonly waits: number;
}

/** Three ticks: the runner is started, it comes online, and the job is seen. */
const AT_ONCE = 3 * TICK;
/** Time until the next queue check. */
const LOOK = 5 * MINUTE + AT_ONCE;

const WALKS: readonly (readonly [what: string, how: Walk, expected: Expected])[] = [
  ['every event arrives', {}, { started: JOBS, waits: AT_ONCE }],
  [
    'no event of a queued job arrives',
    { arrives: action('queued') },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'in_progress arrives before queued, which is ten minutes late',
    { arrives: ({ action: one }) => (one === 'queued' ? 10 * MINUTE : 0) },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'completed arrives first, all other events half an hour later',
    { arrives: ({ action: one }) => (one === 'completed' ? 0 : 30 * MINUTE) },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'no completed event arrives',
    { arrives: action('completed') },
    { started: JOBS, waits: AT_ONCE },
  ],
  [
    'no in_progress or completed event arrives',
    { arrives: action('in_progress', 'completed') },
    { startedAtMost: JOBS + 2, waits: AT_ONCE + 30 * SECOND },
  ],
  ['no event arrives at all', { arrives: never }, { startedAtMost: JOBS + 2, waits: LOOK }],
  [
    'jobs are rerun',
    { reruns: (id) => id % 2 === 0 },
    { ran: JOBS * 1.5, started: JOBS * 1.5, waits: AT_ONCE },
  ],
  [
    'jobs are rerun, and no event of that arrives',
    {
      reruns: (id) => id % 2 === 0,
      arrives: ({ runAttempt }) => (runAttempt === 1 ? 0 : Infinity),
    },
    { ran: JOBS * 1.5, startedAtMost: JOBS * 1.5 + 2, waits: LOOK },
  ],
  [
    'jobs are cancelled while they are queued',
    { cancelled: { jobs: (id) => id % 3 === 0, afterMs: 0 } },
    { ran: (JOBS * 2) / 3, cancelled: JOBS / 3, startedAtMost: JOBS, waits: AT_ONCE },
  ],
  [
    'jobs are cancelled while they are queued, and no event arrives',
    { cancelled: { jobs: (id) => id % 3 === 0, afterMs: 0 }, arrives: action('completed') },
    { ran: (JOBS * 2) / 3, cancelled: JOBS / 3, startedAtMost: JOBS, waits: AT_ONCE },
  ],
  [
    'jobs wait two hours for an approval',
    { approvedAfterMs: 2 * HOUR },
    { started: JOBS, waits: AT_ONCE },
  ],
  [
    'jobs wait two hours for an approval, and no event arrives',
    { approvedAfterMs: 2 * HOUR, arrives: action('queued') },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'the receiver is down for an hour, and missed deliveries are redelivered afterwards',
    { arrives: (_event, at) => (HOUR_DOWN(at) ? 65 * MINUTE - at : 0) },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'the receiver is down for an hour, and nothing is redelivered',
    { arrives: (_event, at) => (HOUR_DOWN(at) ? Infinity : 0) },
    { startedAtMost: JOBS + 2, waits: LOOK },
  ],
  [
    'the CI server rejects queue checks for an hour',
    { answers: (at) => !HOUR_DOWN(at) },
    { started: JOBS, waits: AT_ONCE },
  ],
  [
    'the CI server rejects queue checks for an hour, and the receiver is down',
    { answers: (at) => !HOUR_DOWN(at), arrives: (_event, at) => (HOUR_DOWN(at) ? Infinity : 0) },
    { startedAtMost: JOBS + 2, waits: HOUR + LOOK },
  ],
  [
    'Temporal is down for ten minutes',
    {
      isDown: between(5 * MINUTE, 15 * MINUTE),
      arrives: (_event, at) => (between(5 * MINUTE, 15 * MINUTE)(at) ? 10 * MINUTE : 0),
    },
    { startedAtMost: JOBS + 3, waits: 10 * MINUTE + LOOK },
  ],
];

describe.each([
  ['one run', false],
  ['continued as new at each step', true],
])('%s', (_what, renews) => {
  test.each(WALKS)(
    '%s',
    (_walk, how, { ran = JOBS, cancelled = 0, started, startedAtMost = Infinity, waits }) => {
      const [least, most] = started === undefined ? [0, startedAtMost] : [started, started];
      const result = walk(how, renews);
      expect(result).toMatchObject({
        ran,
        cancelled,
        left: { runners: 0, known: 0, queued: 0, running: 0 },
      });
      expect(result.longestWait).toBeLessThanOrEqual(waits);
      expect(result.started).toBeGreaterThanOrEqual(least);
      expect(result.started).toBeLessThanOrEqual(most);
    },
  );
});
