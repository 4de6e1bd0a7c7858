/** What GitHub answers when something is wrong, each as docs/runner-sets.md says. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Fault } from '../../tools/simulator/faults.ts';
import { describeWithLab } from '../support/lab.ts';
import { scaleSetWorld, type ScaleSetWorld } from '../support/scaleSetWorld.ts';
import { until } from '../support/until.ts';

const SESSION_MS = 3_000;
const POLLS = 'GET /tenant/queue/*';
const OPENINGS = 'POST *sessions';

await describeWithLab('a scale set that is out of order', { temporal: true }, (lab) => {
  let stage: ScaleSetWorld;
  let name: string;

  beforeEach(async () => {
    stage = await scaleSetWorld(lab, { scaleSetSessionMs: SESSION_MS });
    name = `set-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => await stage.close());

  const queue = (count: number, sleepMs = 50): number[] =>
    Array.from(
      { length: count },
      () => stage.simulator.queueJob({ repo: 'acme/web', labels: [name], sleepMs }).id,
    );
  const completed = async (ids: readonly number[]): Promise<void> => {
    for (const id of ids) await stage.simulator.waitForJob(id, 'completed');
  };
  const problem = async (): Promise<string | undefined> =>
    (await stage.status(name)).scaleSet?.problem;
  const requests = (ending: string): number =>
    Object.entries(stage.simulator.requestCounts().byStatus)
      .filter(([key]) => key.endsWith(ending))
      .reduce((sum, [, count]) => sum + count, 0);

  test('the address of the queue is empty: shown, and tried again', async () => {
    const body = {
      sessionId: randomUUID(),
      ownerName: 'x',
      messageQueueUrl: '',
      messageQueueAccessToken: 'x',
      statistics: {},
    };
    const count = 2;
    stage.simulator.addFault({ kind: 'status', status: 200, body, endpoint: OPENINGS, count });
    await stage.start(name);
    await until('the set to show it', async () => (await problem()) !== undefined);
    await completed(queue(2));
    await until('no problem', async () => (await problem()) === undefined);
  });

  test('the answer to the request for a session is lost: it is never ended, and waited for', async () => {
    stage.simulator.addFault({ kind: 'drop', when: 'after', endpoint: OPENINGS, count: 1 });
    await stage.start(name);
    const jobs = queue(2);
    await completed(jobs);
    expect(requests('/sessions 409')).toBeGreaterThan(0);
    expect(requests('sessions/{session} 204')).toBe(0);
  });

  test.each<[string, Fault]>([
    ['is no message', { kind: 'status', status: 200, body: 'a text' }],
    ['is an unknown message', { kind: 'status', status: 200, body: { messageId: 'x' } }],
    ['is a failure', { kind: 'status', status: 503 }],
    ['does not come', { kind: 'drop', when: 'before' }],
  ])(
    'the answer to a poll %s: the demand stays as it was, and no job is lost',
    async (_what, fault) => {
      await stage.start(name);
      const long = queue(2, 600_000);
      await until('both to run', async () => (await stage.status(name)).jobs.running === 2);
      stage.simulator.addFault({ ...fault, endpoint: POLLS, count: 3 });
      await until('the set to show it', async () => (await problem()) !== undefined);
      const { runners, jobs, scaleSet } = await stage.status(name);
      expect([runners.length, jobs.running]).toEqual([2, 2]);
      expect(scaleSet?.at).toMatch(/^20/);
      await completed(queue(2));
      await until('no problem', async () => (await problem()) === undefined);
      expect(long.map((id) => stage.simulator.job(id)?.status)).toEqual([
        'in_progress',
        'in_progress',
      ]);
      for (const id of long) stage.simulator.cancelJob(id);
    },
  );

  test('GitHub keeps one label, and the set is shown which ones it has dropped', async () => {
    await stage.close();
    stage = await scaleSetWorld(lab, { scaleSetLabels: 'name' });
    await stage.start(name, {
      template: { labels: [name, 'large'], scaleSet: { adopt: true } } as never,
    });
    await until('the set to show it', async () => /large/.test((await problem()) ?? ''));
    await completed(queue(1));
  });
});
