import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { SET_ROUTING_MEMO, type SetRoutingInfo } from '../../../core/contract/index.ts';
import { SetDirectory, RoutingUnknownError } from '../../../worker/webhook/setDirectory.ts';
import type { JobDelivery } from '../../../worker/webhook/jobDelivery.ts';

const linux: SetRoutingInfo = {
  labels: ['linux'],
  scope: 'acme',
  scopeKind: 'organization',
  ciServer: 'github',
};
const job = (...labels: string[]): JobDelivery => ({
  ciServer: 'github',
  event: { action: 'queued', jobId: '1', runAttempt: 1, repository: 'acme/app', labels, at: 1 },
});

describe('the running sets', () => {
  let now: number;
  /** The sets that visibility lists, by workflow id: the memo, if any. */
  let listed: Record<string, SetRoutingInfo | undefined>;
  /** The responses of sets to their status query. A missing set does not respond. */
  let answers: Record<string, Partial<SetRoutingInfo>>;
  let lists: number;
  let queries: number;
  let warnings: number;
  let list: () => Promise<void>;
  let sets: SetDirectory;

  beforeEach(() => {
    [now, listed, answers, lists, queries, warnings, list] = [
      1_000_000,
      { 'set-linux': linux },
      {},
      0,
      0,
      0,
      async () => undefined,
    ];
    const client = {
      withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
      workflow: {
        async *list() {
          lists++;
          await list();
          for (const [workflowId, cover] of Object.entries(listed))
            yield { workflowId, memo: cover && { [SET_ROUTING_MEMO]: cover } };
        },
        getHandle: (id: string) => ({
          query: async () => {
            queries++;
            if (answers[id] === undefined) throw new Error('no worker');
            return answers[id];
          },
        }),
      },
    };
    sets = new SetDirectory({
      client: () => client as unknown as Client,
      taskQueue: 'holdfast',
      logger: { warn: () => void warnings++ },
      now: () => now,
    });
  });

  test('are listed once for all concurrent requests and those of the next seconds', async () => {
    const chosen = await Promise.all(
      Array.from({ length: 20 }, async () => (await sets.route(job('linux'), false)).chosen),
    );
    expect(new Set(chosen)).toEqual(new Set(['set-linux']));
    now += 4_999;
    await sets.route(job('linux'), false);
    expect(lists).toBe(1);
    now += 2;
    await sets.route(job('linux'), false);
    expect(lists).toBe(2);
  });

  test('are listed again if none covers a job, or if the chosen one has ended', async () => {
    await sets.route(job('linux'), false);
    now += 2_001;
    listed['set-gpu'] = { ...linux, labels: ['gpu'] };
    expect(await sets.route(job('gpu'), false)).toEqual({
      chosen: 'set-gpu',
      running: new Set(['set-linux', 'set-gpu']),
    });
    expect(lists).toBe(2);
    delete listed['set-linux'];
    now += 1;
    expect((await sets.route(job('linux'), true)).chosen).toBeUndefined();
    expect(lists).toBe(3);
  });

  test('that are missing in one list continue as new; that are missing in two have ended', async () => {
    listed['set-gpu'] = { ...linux, labels: ['gpu'] };
    const chosen = async (): Promise<string | undefined> =>
      (await sets.route(job('gpu'), false)).chosen;
    expect(await chosen()).toBe('set-gpu');
    delete listed['set-gpu'];
    now += 5_001;
    expect(await chosen()).toBe('set-gpu');
    now += 5_001;
    expect(await chosen()).toBeUndefined();
  });

  test('are listed less often if there are thousands, in proportion to the number of requests', async () => {
    for (let index = 0; index < 2_500; index++) listed[`set-${index}`] = linux;
    await sets.route(job('linux'), false);
    now += 14_999;
    await sets.route(job('linux'), false);
    expect(lists).toBe(1);
    now += 2;
    await sets.route(job('linux'), false);
    expect(lists).toBe(2);
  });

  test('are listed again for a request that joined a failed or too early list', async () => {
    const first = Promise.withResolvers<void>();
    list = async () => await first.promise;
    const before = sets.list(0).catch((error: unknown) => error);
    now += 1;
    const after = sets.list(0);
    list = async () => undefined;
    listed = { 'set-new': linux };
    first.reject(new Error('down'));
    expect((await after).sets.map(({ workflowId }) => workflowId)).toEqual(['set-new']);
    await before;
    list = async () => await Promise.reject(new Error('still down'));
    now += 1;
    await expect(sets.list(0)).rejects.toThrow('still down');
  });

  describe('while visibility is unavailable', () => {
    const down = async (): Promise<void> => await Promise.reject(new Error('visibility is down'));

    test('are those of the last list, for ten minutes', async () => {
      await sets.route(job('linux'), false);
      list = down;
      for (const laterMs of [6_000, 60_000, 540_000]) {
        now = 1_000_000 + laterMs;
        expect((await sets.route(job('linux'), false)).chosen).toBe('set-linux');
        expect((await sets.route(job('gpu'), false)).chosen).toBeUndefined();
        expect(sets.ageMs).toBe(laterMs);
      }
      expect(warnings).toBe(1);
      now = 1_600_001;
      await expect(sets.route(job('linux'), false)).rejects.toThrow('visibility is down');
    });

    test('are listed once in five seconds, however many events there are', async () => {
      await sets.route(job('linux'), false);
      list = down;
      now += 6_000;
      for (let event = 0; event < 10; event++) await sets.route(job('linux'), false);
      expect(lists).toBe(2);
      now += 5_000;
      list = async () => undefined;
      await sets.route(job('linux'), false);
      expect([lists, sets.ageMs]).toEqual([3, 0]);
    });

    test('are not those of the last list for a job whose set has ended', async () => {
      await sets.route(job('linux'), false);
      list = down;
      now += 1;
      await expect(sets.route(job('linux'), true)).rejects.toThrow('visibility is down');
    });

    test('are unknown to a process that never listed them', async () => {
      list = down;
      await expect(sets.route(job('linux'), false)).rejects.toThrow('visibility is down');
    });
  });

  test('without a memo are queried, and their last response is used if they do not respond', async () => {
    listed = { 'set-young': undefined };
    answers = { 'set-young': { ciServer: 'github', labels: ['linux'], scope: 'acme' } };
    expect((await sets.route(job('linux'), false)).chosen).toBe('set-young');
    answers = {};
    now += 60_000;
    expect((await sets.route(job('linux'), false)).chosen).toBe('set-young');
    expect([queries, warnings]).toEqual([2, 1]);
  });

  test('with unknown labels may cover a job that no other set covers', async () => {
    listed['set-silent'] = undefined;
    expect((await sets.route(job('linux'), false)).chosen).toBe('set-linux');
    await expect(sets.route(job('gpu'), false)).rejects.toThrow(RoutingUnknownError);
    await expect(sets.route(job('gpu'), false)).rejects.toThrow('set-silent');
    expect(warnings).toBe(1);
  });
});
