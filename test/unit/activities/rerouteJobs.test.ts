import { describe, expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { rerouteJobs } from '../../../activities/runnerSet/rerouteJobs.ts';
import { RunningSets } from '../../../activities/runnerSet/runningSets.ts';
import {
  SET_ROUTING_MEMO,
  type JobEvent,
  type SetRoutingInfo,
} from '../../../core/contract/index.ts';
import type {
  RerouteJobsInput,
  RerouteJobsResult,
  Timestamped,
} from '../../../core/activities/index.ts';

const routing: SetRoutingInfo = {
  labels: ['linux'],
  scope: 'acme',
  scopeKind: 'organization',
  ciServer: 'github',
};
const input: RerouteJobsInput = {
  set: 'self',
  routing,
  jobs: [],
  draining: false,
  forwardedEvents: [],
};
const jobs = (count: number): RerouteJobsInput['jobs'] =>
  Array.from({ length: count }, (_none, index) => ({
    key: `${index}/2`,
    repository: 'acme/app',
    since: 7,
  }));

interface World {
  readonly sets: Record<string, SetRoutingInfo>;
  /** Errors of the signals to sets. */
  readonly failing?: Record<string, Error>;
}

async function run(
  { sets, failing = {} }: World,
  more: Partial<RerouteJobsInput>,
  signaled: Record<string, JobEvent[]> = {},
): Promise<{
  answer: Timestamped & RerouteJobsResult;
  signaled: Record<string, JobEvent[]>;
  signals: number;
  lists: number;
}> {
  let [signals, lists] = [0, 0];
  const client = {
    withDeadline: async (_deadline: number, call: () => unknown) => await call(),
    withAbortSignal: async (_signal: AbortSignal, call: () => unknown) => await call(),
    workflow: {
      async *list() {
        lists++;
        for (const [workflowId, covers] of Object.entries(sets))
          yield { workflowId, memo: { [SET_ROUTING_MEMO]: covers } };
      },
      getHandle: (workflowId: string) => ({
        signal: async (
          _definition: unknown,
          { events, at }: { events: JobEvent[]; at: number },
        ) => {
          signals++;
          expect(Math.abs(Date.now() - at)).toBeLessThan(3_600_000);
          if (failing[workflowId] !== undefined) throw failing[workflowId];
          (signaled[workflowId] ??= []).push(...events);
        },
      }),
    },
  } as unknown as Client;
  const environment = new MockActivityEnvironment(
    { taskQueue: 'holdfast' },
    { client, logger: new DefaultLogger('ERROR', () => undefined) },
  );
  const running = new RunningSets({ client: () => client, taskQueue: 'holdfast' });
  const answer = await environment.run<
    [],
    Timestamped & RerouteJobsResult,
    () => Promise<Timestamped & RerouteJobsResult>
  >(async () => await rerouteJobs(running, { ...input, ...more }));
  return { answer, signaled, signals, lists };
}

const ended = (workflowId: string): Error =>
  new WorkflowNotFoundError('ended', workflowId, undefined);

describe('rerouting jobs', () => {
  const sets = {
    'set-self': routing,
    'set-a': routing,
    'set-b': routing,
    'set-full': { ...routing, atCapacity: true as const },
    'set-gpu': { ...routing, labels: ['linux', 'gpu'] },
  };

  test('each goes to one set with free capacity, in few signals, with the name of the sender', async () => {
    const { answer, signaled, signals } = await run({ sets }, { jobs: jobs(500) });
    expect(Object.keys(signaled).toSorted()).toEqual(['set-a', 'set-b']);
    const all = Object.values(signaled).flat();
    expect(all.map(({ jobId }) => Number(jobId)).toSorted((a, b) => a - b)).toEqual(
      jobs(500).map((_job, index) => index),
    );
    expect(all[0]).toEqual({
      action: 'queued',
      jobId: expect.any(String),
      runAttempt: 2,
      repository: 'acme/app',
      labels: [],
      at: 7,
      reroutedBy: 'set-self',
    });
    expect(signals).toBeLessThanOrEqual(4);
    expect(answer.substitutes).toBe(3);
    for (const { to, keys } of answer.rerouted)
      for (const key of keys) expect(signaled[to]?.map(({ jobId }) => `${jobId}/2`)).toContain(key);
    expect(answer.rerouted.flatMap(({ keys }) => keys)).toHaveLength(500);
  });

  test('without free capacity they stay, except in a draining set, which reroutes them', async () => {
    const full = { 'set-self': routing, 'set-full': { ...routing, atCapacity: true as const } };
    expect((await run({ sets: full }, { jobs: jobs(3) })).answer).toMatchObject({
      rerouted: [],
      substitutes: 1,
    });
    expect((await run({ sets: full }, { jobs: jobs(3), draining: true })).answer.rerouted).toEqual([
      { to: 'set-full', keys: ['0/2', '1/2', '2/2'] },
    ]);
  });

  test('jobs that an ended set did not accept come back', async () => {
    const { answer, signaled } = await run(
      { sets, failing: { 'set-a': ended('set-a') } },
      { jobs: jobs(50) },
    );
    expect(answer.rerouted).toEqual([
      { to: 'set-b', keys: signaled['set-b']?.map(({ jobId }) => `${jobId}/2`) },
    ]);
    expect(answer.rerouted[0]?.keys.length).toBeLessThan(50);
  });

  test('a failure after some were accepted is ignored, because those must not be sent again; otherwise it is retried', async () => {
    const down = new Error('down');
    expect(
      (await run({ sets, failing: { 'set-a': down } }, { jobs: jobs(50) })).answer.rerouted.map(
        ({ to }) => to,
      ),
    ).toEqual(['set-b']);
    await expect(
      run({ sets, failing: { 'set-a': down, 'set-b': down } }, { jobs: jobs(50) }),
    ).rejects.toThrow('down');
  });

  test('a failed signal keeps the jobs: a retry reroutes them, possibly elsewhere', async () => {
    const event: JobEvent = {
      action: 'completed',
      jobId: '1',
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: 1,
    };
    const signaled: Record<string, JobEvent[]> = {};
    await expect(
      run(
        { sets, failing: { 'set-gone': new Error('down') } },
        { jobs: jobs(5), forwardedEvents: [{ to: 'set-gone', event }] },
        signaled,
      ),
    ).rejects.toThrow('down');
    expect(signaled).toEqual({});
  });

  test('events go to the set with the job, or, if that set has ended, to all that may have it; sets are listed only if necessary', async () => {
    const event: JobEvent = {
      action: 'completed',
      jobId: '1',
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: 1,
    };
    const forwardedEvents = [{ to: 'set-a', event }];
    const { signaled, lists } = await run({ sets }, { forwardedEvents });
    expect([signaled, lists]).toEqual([{ 'set-a': [event] }, 0]);
    expect(
      (await run({ sets, failing: { 'set-a': ended('set-a') } }, { forwardedEvents })).signaled,
    ).toEqual({ 'set-b': [event], 'set-full': [event] });
  });
});
