/** Signals that have piled up while no worker ran: each activation takes in a bounded number, and none is lost. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  jobEventsSignal,
  runnerEventsSignal,
  type JobEvent,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { chainOf } from '../support/replays.ts';

/** More than three activations take in. */
const PENDING = 1_600;
const AT_ONCE = 100;

const event = (action: JobEvent['action'], jobId: number): JobEvent => ({
  action,
  jobId: String(jobId),
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['linux'],
  at: Date.now(),
});

await describeWithLab('a backlog of signals', { temporal: true }, (lab) => {
  let stage: MemoryWorld;
  let set: SetRun;

  beforeEach(async () => {
    stage = await memoryWorld(lab);
    set = await SetRun.start(stage, {
      minIdle: 0,
      max: 1,
      paused: true,
      queueCheck: '0s',
      intervals: { relist: '5m' } as never,
    });
    await set.reaches('its start', ({ runners }) => runners.length === 0);
    await stage.world.suspend();
  });
  afterEach(async () => await stage.world.close());

  async function pileUp(send: (index: number) => Promise<void>): Promise<void> {
    for (let from = 0; from < PENDING; from += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, (_none, index) => send(from + index)));
  }

  /** @returns how often the set had to wait before it took in more */
  async function takesIn(like: (status: RunnerSetStatus) => boolean): Promise<number> {
    await stage.world.resume();
    await set.reaches('all of them taken in', like, 60_000);
    const events = (await chainOf(stage.world.client, set.handle.workflowId)).flatMap(
      (history) => history.events ?? [],
    );
    // The server itself ends a task that is open while too many signals come.
    const failed = events.filter(
      ({ workflowTaskFailedEventAttributes: attributes }) =>
        attributes !== null &&
        attributes !== undefined &&
        attributes.identity !== 'history-service',
    );
    expect(failed).toEqual([]);
    return events.filter(
      ({ activityTaskScheduledEventAttributes: scheduled }) =>
        scheduled?.activityType?.name === 'getTime',
    ).length;
  }

  test('each activation handles a part of it, and executes a command at its end', async () => {
    await pileUp(
      async (index) =>
        await set.handle.signal(jobEventsSignal, {
          events: [event('queued', index)],
          at: Date.now(),
        }),
    );
    const command = set.command({ command: 'pause', reason: 'last' });
    expect(
      await takesIn(
        ({ jobs, blockedReason }) => jobs.queued === PENDING && blockedReason === 'paused: last',
      ),
    ).toBeGreaterThanOrEqual(3);
    await command;
  });

  test('signals of different names keep their order', async () => {
    const half = PENDING / 2;
    await pileUp(async (index) => {
      await (index % 2 === 0
        ? set.handle.signal(jobEventsSignal, {
            events: [event('queued', index % half)],
            at: Date.now(),
          })
        : set.handle.signal(runnerEventsSignal, { events: [] }));
      if (index >= half && index % 2 === 0)
        await set.handle.signal(jobEventsSignal, {
          events: [event('completed', index % half)],
          at: Date.now(),
        });
    });
    expect(
      await takesIn(({ jobs }) => jobs.queued === 0 && jobs.completedTotal === half / 2),
    ).toBeGreaterThanOrEqual(3);
  });
});
