import { describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type { CiServer } from '../../../activities/ports/ciServer.ts';
import { checkQueuedJobs } from '../../../activities/runnerSet/checkQueuedJobs.ts';
import { RunningSets } from '../../../activities/runnerSet/runningSets.ts';
import {
  SET_ROUTING_MEMO,
  type QueueCheckResult,
  type SetRoutingInfo,
} from '../../../core/contract/index.ts';
import type { CheckQueuedJobsInput } from '../../../core/activities/index.ts';
import type { CiJob, CiJobList } from '../../../core/domain/ciServer.ts';

const cover: SetRoutingInfo = {
  labels: ['linux'],
  scope: 'acme',
  scopeKind: 'organization',
  ciServer: 'github',
};
const input: CheckQueuedJobsInput = {
  set: 'linux',
  taskQueue: 'holdfast',
  scope: { kind: 'organization', name: 'acme' },
  credential: 'default',
  labels: ['linux'],
  requestedAt: 1_000_000,
  maxAgeMs: 0,
  overdue: [],
  reroutedHere: [],
  reroutedTo: [],
};
const job = (id: number, more: Partial<CiJob> = {}): CiJob => ({
  id: String(id),
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['linux'],
  status: 'queued',
  queuedAt: 1,
  ...more,
});

/** @returns the single signal that the set got, or `undefined` */
async function check(
  ...args: Parameters<typeof checkInParts>
): Promise<QueueCheckResult | undefined> {
  const results = await checkInParts(...args);
  expect(results.length).toBeLessThan(2);
  return results[0];
}

async function checkInParts(
  answers: Pick<CiServer, 'listQueuedJobs' | 'getJob'>,
  more: Partial<CheckQueuedJobsInput> = {},
  sets: Record<string, SetRoutingInfo> = { 'set-linux': cover },
): Promise<QueueCheckResult[]> {
  const server = { kind: 'github', ...answers };
  const results: QueueCheckResult[] = [];
  const client = {
    withDeadline: async (_deadline: number, run: () => unknown) => await run(),
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
    workflow: {
      async *list() {
        for (const [workflowId, covers] of Object.entries(sets))
          yield { workflowId, memo: { [SET_ROUTING_MEMO]: covers } };
      },
      getHandle: (workflowId: string) => ({
        signal: async (_definition: unknown, seen: QueueCheckResult) => {
          expect(workflowId).toBe('set-linux');
          results.push(seen);
        },
      }),
    },
  } as unknown as Client;
  const ports = { ciServers: { get: () => server } } as unknown as ActivityPorts;
  const environment = new MockActivityEnvironment(
    { taskQueue: 'holdfast' },
    { client, logger: new DefaultLogger('ERROR', () => undefined) },
  );
  const { supported } = await environment.run<
    [],
    { supported: boolean },
    () => Promise<{ supported: boolean }>
  >(
    async () =>
      await checkQueuedJobs(
        ports,
        new RunningSets({ client: () => client, taskQueue: 'holdfast' }),
        { ...input, ...more },
      ),
  );
  expect(supported).toBe(results.length > 0);
  return results;
}

const listing = (
  jobs: CiJob[],
  more: Partial<CiJobList> = {},
): Pick<CiServer, 'listQueuedJobs'> => ({
  listQueuedJobs: async () => ({ jobs, complete: true, ...more }),
});

describe("a set's check of the CI server's jobs", () => {
  test('returns the jobs that it has to serve, those rerouted to it, and those of its runners', async () => {
    const sets = { 'set-linux': cover, 'set-gpu': { ...cover, labels: ['linux', 'gpu'] } };
    const own = job(4, {
      labels: ['gpu'],
      status: 'in_progress',
      runnerName: 'linux-abcdefghij-0a1b2c3d4e',
    });
    const jobs = [job(1), job(2, { labels: ['gpu'] }), job(3, { labels: ['gpu'] }), own];
    expect(await check(listing(jobs), { reroutedHere: ['3/1'] }, sets)).toEqual({
      checkedAt: 1_000_000,
      complete: true,
      jobs: [jobs[0], jobs[2], own].map((one) => ({ ...one, labels: [] })),
      absent: [],
      endedSets: [],
    });
  });

  test('jobs without labels belong only to a set with groupJobs', async () => {
    const jobs = listing([job(1, { labels: [] })]);
    const ids = async (more: Partial<SetRoutingInfo>): Promise<string[] | undefined> =>
      (await check(jobs, {}, { 'set-linux': { ...cover, ...more } }))?.jobs.map(({ id }) => id);
    expect([await ids({}), await ids({ groupJobs: true })]).toEqual([[], ['1']]);
  });

  test('10,000 jobs are split into parts of a size that Temporal accepts; only the last lists the absent ones', async () => {
    const labels = ['self-hosted', 'linux', 'x64', 'large', 'gpu', 'ssd'];
    const jobs = Array.from({ length: 10_000 }, (_none, index) =>
      job(40_000_000_000 + index, { labels, repository: 'acme/'.padEnd(60, 'x') }),
    );
    const results = await checkInParts(listing(jobs), {}, { 'set-linux': { ...cover, labels } });
    for (const part of results) expect(JSON.stringify(part).length).toBeLessThan(512 * 1_024);
    const [last, ...before] = results.toReversed();
    expect(before.map(({ complete }) => complete)).toEqual(before.map(() => false));
    expect(last?.complete).toBe(true);
    expect([last, ...before].map((part) => part?.continues)).toEqual([
      undefined,
      ...before.map(() => true),
    ]);
    const earlier = before.flatMap((part) => part.jobs.map(({ id }) => `${id}/1`));
    expect(last?.listed?.toSorted()).toEqual(earlier.toSorted());
    expect(earlier.length + (last?.jobs.length ?? 0)).toBe(10_000);
  });

  test('each of equal sets gets its own part, and all of them together every job', async () => {
    const sets = { 'set-linux': cover, 'set-linux-2': cover, 'set-linux-3': cover };
    const jobs = Array.from({ length: 60 }, (_none, index) => job(index));
    const seen = await check(listing(jobs), {}, sets);
    expect(seen?.jobs.length).toBeGreaterThan(5);
    expect(seen?.jobs.length).toBeLessThan(40);
  });

  test.each<Partial<CiJobList>>([
    { complete: false, budgetUntil: 5_000_000 },
    { complete: false, unsupported: true },
  ])('reports why it is incomplete: %j', async (list) => {
    expect(await check(listing([job(1)], list))).toMatchObject(list);
  });

  test('reports its own age', async () => {
    expect(await check(listing([], { ageMs: 700 }))).toMatchObject({ checkedAt: 999_300 });
  });

  test('names ended sets that have jobs of this one', async () => {
    expect(await check(listing([]), { reroutedTo: ['set-linux', 'set-gone'] })).toMatchObject({
      endedSets: ['set-gone'],
    });
  });

  test('requests overdue jobs one by one if the list is incomplete', async () => {
    const asked: string[] = [];
    const answers: Record<string, CiJob | 'absent' | undefined> = {
      7: job(7, { labels: ['gpu'] }),
      8: 'absent',
      9: undefined,
    };
    const server: Pick<CiServer, 'listQueuedJobs' | 'getJob'> = {
      ...listing([job(6)], { complete: false }),
      getJob: async (scope, { id, repository }) => {
        expect([scope, repository]).toEqual([input.scope, 'acme/app']);
        asked.push(id);
        return answers[id];
      },
    };
    const overdue = [6, 7, 8, 9].map((id) => ({ key: `${id}/1`, repository: 'acme/app' }));
    expect(await check(server, { overdue })).toEqual({
      checkedAt: 1_000_000,
      complete: false,
      jobs: [job(6, { labels: [] }), job(7, { labels: [] })],
      absent: ['8/1'],
      endedSets: [],
    });
    expect(asked).toEqual(['7', '8', '9']);
    asked.length = 0;
    await check({ ...server, ...listing([job(6)]) }, { overdue });
    expect(asked).toEqual([]);
  });

  test('returns what it has found even if single jobs cannot be read', async () => {
    const server = {
      ...listing([job(6)], { complete: false }),
      getJob: async () =>
        await Promise.reject(new CiServerError('rate_limited', 'wait', { retryAfterMs: 1 })),
    };
    expect(
      await check(server, {
        overdue: [
          { key: '7/1', repository: 'acme/app' },
          { key: '8/1', repository: 'acme/app' },
        ],
      }),
    ).toMatchObject({ jobs: [{ id: '6' }], absent: [] });
  });

  test('reports an overdue job that another set has to serve now as absent', async () => {
    const sets = { 'set-linux': { ...cover, labels: ['linux', 'big'] }, 'set-new': cover };
    expect(
      await check(
        listing([job(5)], { complete: false }),
        { overdue: [{ key: '5/1', repository: 'acme/app' }] },
        sets,
      ),
    ).toMatchObject({ jobs: [], absent: ['5/1'] });
  });

  test('a CI server without a list is not queried', async () => {
    expect(await check({})).toBeUndefined();
  });
});
