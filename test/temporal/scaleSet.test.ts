import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pMap from 'p-map';
import { setWorkflowId, type WhyAnswer } from '../../core/contract/index.ts';
import { runCli } from '../support/cli.ts';
import { describeWithLab } from '../support/lab.ts';
import { notifySet } from '../support/setCommands.ts';
import { SetRun } from '../support/setRun.ts';
import { scaleSetWorld, type ScaleSetWorld } from '../support/scaleSetWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a set with the demand of a scale set', { temporal: true }, (lab) => {
  let stage: ScaleSetWorld;
  let name: string;

  beforeEach(async () => {
    stage = await scaleSetWorld(lab);
    name = `set-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => await stage.close());

  async function why(...args: string[]): Promise<WhyAnswer> {
    const { stdout } = await runCli(['why', ...args, '--json'], {
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: stage.world.taskQueue,
    });
    return JSON.parse(stdout) as WhyAnswer;
  }
  const queue = (count = 1, sleepMs = 50): number[] =>
    Array.from(
      { length: count },
      () => stage.simulator.queueJob({ repo: 'acme/web', labels: [name], sleepMs }).id,
    );
  const completed = async (ids: readonly number[]): Promise<void> => {
    for (const id of ids) await stage.simulator.waitForJob(id, 'completed');
  };
  const hasSession = async (): Promise<unknown> =>
    await stage.simulator.waitFor(() => stage.simulator.scaleSet(name)?.session, 'a session');

  test('runs its jobs, leaves nothing, and removes the scale set at its end', async () => {
    await stage.start(name);
    const jobs = queue(7);
    await completed(jobs);
    await until('no runner to be left', async () => {
      const { runners, jobs: counts } = await stage.status(name);
      return runners.length === 0 && counts.queued === 0 && counts.completedTotal === 7;
    });
    expect(stage.simulator.jobs().map(({ conclusion }) => conclusion)).toEqual(
      jobs.map(() => 'success'),
    );
    expect(stage.simulator.scaleSet(name)).toMatchObject({ unacknowledged: 0, undelivered: 0 });
    // No spare runner: each job had one registration.
    expect(stage.compute.created).toHaveLength(7);
    await notifySet(stage.world.client, name, { command: 'drain', reason: 'over' });
    await stage.world.client.workflow.getHandle(setWorkflowId(name)).result();
    await stage.simulator.waitFor(
      () => stage.simulator.scaleSet(name) === undefined,
      'no scale set',
    );
    await stage.world.client.workflow.getHandle(`scale-set-${name}`).result();
    expect(stage.simulator.runners()).toEqual([]);
  });

  test('a paused set takes no jobs, and its listener applies it within a poll', async () => {
    await stage.start(name, { paused: true });
    await hasSession();
    const jobs = queue();
    await notifySet(stage.world.client, name, { command: 'resume' });
    await completed(jobs);
    await notifySet(stage.world.client, name, { command: 'pause', reason: 'rest' });
    await stage.simulator.waitFor(
      () => stage.simulator.scaleSet(name)?.capacity === 0,
      'capacity 0',
    );
    expect(stage.simulator.scaleSet(name)?.capacities).toEqual([0, 5, 0]);
  });

  test('a session that GitHub ends is opened again, and no job is lost', async () => {
    await stage.start(name);
    await hasSession();
    stage.simulator.evictScaleSet(name);
    const jobs = queue(3);
    await completed(jobs);
    await until(
      'the listener to be well',
      async () => (await stage.status(name)).runners.length === 0,
    );
  });

  test('a scale set removed at GitHub is created again', async () => {
    await stage.start(name);
    await hasSession();
    const before = stage.simulator.scaleSet(name)?.id;
    stage.simulator.removeScaleSet(name);
    await completed(queue(2));
    expect(stage.simulator.scaleSet(name)?.id).not.toBe(before);
  });

  test('another worker resumes the session of one that ended, without a conflict', async () => {
    await stage.start(name);
    await hasSession();
    const session = stage.simulator.scaleSet(name)?.session?.id;
    await stage.world.suspend();
    const jobs = queue(2);
    await stage.world.resume();
    await completed(jobs);
    expect(stage.simulator.scaleSet(name)?.session?.id).toBe(session);
    const counts = stage.simulator.requestCounts().byStatus;
    expect(Object.keys(counts).filter((key) => key.endsWith('sessions 409'))).toEqual([]);
    // The wait for the next worker does not grow: nobody reads the jobs meanwhile.
    await stage.world.suspend();
    const listener = stage.world.client.workflow.getHandle(`scale-set-${name}`);
    const { pendingActivities } = (await listener.describe()).raw;
    const [pending, ...others] = pendingActivities ?? [];
    expect(others).toEqual([]);
    // More often if an attempt timed out on a busy machine.
    expect(pending?.attempt).toBeGreaterThanOrEqual(3);
    expect(Number(pending?.currentRetryInterval?.seconds)).toBe(1);
  });

  test.each([
    ['an acquisition that is rejected', 'POST *acquirejobs', { kind: 'status', status: 503 }],
    ['an acquisition without an answer', 'POST *acquirejobs', { kind: 'drop', when: 'after' }],
    [
      'an acknowledgement that is rejected',
      'DELETE /tenant/queue/*',
      { kind: 'status', status: 503 },
    ],
    [
      'an acknowledgement without an answer',
      'DELETE /tenant/queue/*',
      { kind: 'drop', when: 'after' },
    ],
  ] as const)(
    '%s is repeated: no job is lost, and none has two runners',
    async (_what, endpoint, fault) => {
      await stage.start(name);
      await hasSession();
      stage.simulator.addFault({ ...fault, endpoint, count: 1 });
      await completed(queue(2));
      expect(stage.simulator.faults().map(({ hits }) => hits)).toEqual([1]);
      await until(
        'no runner to be left',
        async () => (await stage.status(name)).runners.length === 0,
      );
      expect(stage.compute.created).toHaveLength(2);
    },
  );

  test('a session of another system is never ended: the set shows it, and opens its own afterwards', async () => {
    const scope = { kind: 'organization', name: 'acme' } as const;
    const wanted = {
      scope,
      name,
      group: 'default',
      labels: [name],
      mark: 'holdfast-9876543210',
    } as const;
    await stage.scaleSets.ensure(wanted);
    stage.simulator.holdScaleSet(name, 'arc-listener');
    const held = stage.simulator.scaleSet(name)?.session;
    const template = { scaleSet: { adopt: true } } as never;
    await stage.start(name, { template });
    const jobs = queue();
    await until('the set to show it', async () =>
      /arc-listener/.test((await stage.status(name)).scaleSet?.problem ?? ''),
    );
    expect(stage.simulator.scaleSet(name)?.session).toEqual(held);
    expect((await why(String(jobs[0]), '--labels', name)).causes[0]).toMatchObject({
      cause: 'session_held',
      text: expect.stringContaining('arc-listener'),
      since: expect.stringMatching(/^20/),
    });
    expect((await why(name)).causes[0]?.cause).toBe('session_held');
    stage.simulator.evictScaleSet(name);
    await completed(jobs);
    await until(
      'no problem',
      async () => (await stage.status(name)).scaleSet?.problem === undefined,
    );
  });

  test('a scale set in use by another system is neither changed nor removed at the end', async () => {
    const scope = { kind: 'organization', name: 'acme' } as const;
    const mark = 'holdfast-9876543210';
    await stage.scaleSets.ensure({ scope, name, group: 'default', labels: ['theirs'], mark });
    stage.simulator.holdScaleSet(name, 'arc-listener');
    const before = stage.simulator.scaleSet(name);
    await stage.start(name, { template: { scaleSet: { adopt: true } } as never });
    await until('the set to show it', async () =>
      /arc-listener/.test((await stage.status(name)).scaleSet?.problem ?? ''),
    );
    await notifySet(stage.world.client, name, { command: 'drain', reason: 'over' });
    await stage.world.client.workflow.getHandle(`scale-set-${name}`).result();
    expect(stage.simulator.scaleSet(name)).toEqual(before);
  });

  test('of two sets with one scale set, the one without the session does not remove it', async () => {
    await stage.start(name);
    await hasSession();
    const other = `set-${randomUUID().slice(0, 8)}`;
    await stage.start(other, { template: { scaleSet: { name } } as never });
    await until('the other to show it', async () =>
      new RegExp(name).test((await stage.status(other)).scaleSet?.problem ?? ''),
    );
    const before = stage.simulator.scaleSet(name);
    await notifySet(stage.world.client, other, { command: 'drain', reason: 'over' });
    await stage.world.client.workflow.getHandle(`scale-set-${other}`).result();
    expect(stage.simulator.scaleSet(name)).toMatchObject({
      id: before?.id,
      session: before?.session,
    });
    await completed(queue(1));
  });

  test('a cancelled listener closes its session, and keeps the scale set', async () => {
    await stage.start(name);
    await hasSession();
    const listener = stage.world.client.workflow.getHandle(`scale-set-${name}`);
    await listener.cancel();
    await expect(listener.result()).rejects.toThrow('cancelled');
    expect(stage.simulator.scaleSet(name)).toMatchObject({ labels: [name, expect.anything()] });
    expect(stage.simulator.scaleSet(name)?.session).toBeUndefined();
  });

  test('signals without a change keep the session; many of them start a new run', async () => {
    await stage.start(name);
    await hasSession();
    const session = stage.simulator.scaleSet(name)?.session?.id;
    const { client } = stage.world;
    const listener = client.workflow.getHandle(`scale-set-${name}`);
    const { runId } = await listener.describe();
    const { events } = await listener.fetchHistory();
    const started = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
    const input = JSON.parse(Buffer.from(started?.data ?? []).toString()) as object;
    await listener.signal('listenerChanged', { input, hash: 'x' });
    // The check is a local activity.
    await until('the same input to be checked', async () => {
      const history = await listener.fetchHistory();
      const checks = (history.events ?? []).filter((event) => event.markerRecordedEventAttributes);
      return checks.length === 2;
    });
    await pMap(Array(1_000).keys(), async () => await listener.signal('listenerChanged', 'x'), {
      concurrency: 50,
    });
    await until('a new run', async () => (await listener.describe()).runId !== runId);
    const first = await client.workflow.getHandle(`scale-set-${name}`, runId).fetchHistory();
    const signals = (first.events ?? []).filter(
      (event) => event.workflowExecutionSignaledEventAttributes,
    );
    expect(signals.length).toBeGreaterThan(900);
    await completed(queue(1));
    expect(stage.simulator.scaleSet(name)?.session?.id).toBe(session);
  });

  test('a scale set of another system is not changed without adopt, and the set shows it', async () => {
    const scope = { kind: 'organization', name: 'acme' } as const;
    const wanted = {
      scope,
      name,
      group: 'default',
      labels: ['theirs'],
      mark: 'holdfast-9876543210',
    } as const;
    await stage.scaleSets.ensure(wanted);
    const before = stage.simulator.scaleSet(name);
    await stage.start(name);
    await until('the set to show it', async () =>
      /scaleSet.adopt/.test((await stage.status(name)).scaleSet?.problem ?? ''),
    );
    await notifySet(stage.world.client, name, { command: 'drain', reason: 'over' });
    await stage.world.client.workflow.getHandle(setWorkflowId(name)).result();
    expect(stage.simulator.scaleSet(name)).toEqual(before);
  });

  test('of thousands of queued jobs, it takes as many as the set can run', async () => {
    await stage.start(name, { max: 3 });
    await hasSession();
    queue(10_000, 600_000);
    await until('three runners at work', async () => {
      const { runners, jobs } = await stage.status(name);
      return jobs.running === 3 && runners.length === 3;
    });
    expect(stage.simulator.scaleSet(name)).toMatchObject({ available: 0, assigned: 0, running: 3 });
    expect(stage.compute.created).toHaveLength(3);
    for (const job of stage.simulator.jobs()) stage.simulator.cancelJob(job.id);
  });

  test('a token that expires during a poll has no effect', async () => {
    await stage.start(name);
    await hasSession();
    stage.simulator.expireScaleSetToken(name);
    await completed(queue(2));
    expect((await stage.status(name)).scaleSet?.problem).toBeUndefined();
  });

  test('changed labels are sent to GitHub, in the same scale set', async () => {
    await stage.start(name);
    await hasSession();
    const { id, session } = stage.simulator.scaleSet(name) ?? {};
    const template = SetRun.template({ demand: 'scaleSet', labels: [name, 'large'] });
    await notifySet(stage.world.client, name, { command: 'setTemplate', template });
    await stage.simulator.waitFor(
      () => stage.simulator.scaleSet(name)?.labels.includes('large'),
      'the label',
    );
    await completed(queue(1));
    expect(stage.simulator.scaleSet(name)).toMatchObject({ id, session: { id: session?.id } });
  });

  test('another credential opens a session of the same scale set, and a job of before ends', async () => {
    await stage.start(name);
    const [job = 0] = queue(1, 600_000);
    await until('it to run', async () => (await stage.status(name)).jobs.running === 1);
    const before = stage.simulator.scaleSet(name);
    const template = SetRun.template({
      demand: 'scaleSet',
      labels: [name],
      credential: 'other',
    });
    await notifySet(stage.world.client, name, { command: 'setTemplate', template });
    const session = await stage.simulator.waitFor(() => {
      const now = stage.simulator.scaleSet(name)?.session;
      return now?.id === before?.session?.id ? undefined : now;
    }, 'another session');
    expect(stage.simulator.scaleSet(name)).toMatchObject({ id: before?.id, running: 1, session });
    expect(stage.simulator.job(job)?.status).toBe('in_progress');
    stage.simulator.cancelJob(job);
  });
});
