import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CompleteAsyncError } from '@temporalio/activity';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { WaitCompleter } from '../../activities/ports/waitCompleter.ts';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createWaitCompleter } from '../../worker/plugin/waitCompleter.ts';
import { drainRunners } from '../../activities/runnerSet/drainRunners.ts';
import { RUNNER_WORKFLOW, SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import { formatLocation, type ServedLocation } from '../../core/domain/location.ts';
import type { PodView } from '../../core/domain/pod.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});
const POD: PodView = {
  name: 'pod-1',
  uid: 'u-1',
  workflowId: 'w',
  scheduled: true,
  createdAt: '2026-01-01T00:00:00Z',
  ended: true,
  deleted: false,
  terminating: false,
};

/** As its workflow gets it, which knows that it is its own. */
const { workflowId: _its, ...SEEN } = POD;
const PLACE: ServedLocation = {
  compute: 'kubernetes',
  cluster: randomUUID(),
  installation: 'mine',
  namespace: 'ci',
};

await describeWithLab('completing waits', { temporal: true }, (lab) => {
  const taskQueue = `it's-${randomUUID().slice(0, 8)}`; // a quote, to be quoted in queries
  let connection: NativeConnection;
  let client: Client;
  let worker: Worker;
  let running: Promise<void>;
  let completer: WaitCompleter;

  beforeAll(async () => {
    connection = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
    client = new Client({
      connection: await Connection.connect({ address: lab.temporal?.address ?? '' }),
    });
    completer = createWaitCompleter({ client: () => client, taskQueue });
    const wait = async (): Promise<never> => await Promise.reject(new CompleteAsyncError());
    worker = await Worker.create({
      connection,
      taskQueue,
      workflowsPath: fileURLToPath(new URL('../support/waitingRunner.ts', import.meta.url)),
      activities: { wait },
    });
    running = worker.run();
  });
  afterAll(async () => {
    worker.shutdown();
    await running;
    await connection.close();
    await client.connection.close();
  });

  /** Runners whose waits have given their slots back. */
  async function waitingRunners(count: number, place = PLACE): Promise<WorkflowHandle[]> {
    const start = async (): Promise<WorkflowHandle> =>
      await client.workflow.start(RUNNER_WORKFLOW, {
        taskQueue,
        workflowId: `runner-${randomUUID().slice(0, 8)}`,
        typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.place, value: formatLocation(place) }],
      });
    const handles = await Promise.all(Array.from({ length: count }, start));
    let found: string[] = [];
    await until(
      'the waits to be pending',
      async () => (found = await pending(new Set(), place)).length === count,
      () => found.join(),
    );
    return handles;
  }
  async function waitingRunner(): Promise<WorkflowHandle> {
    const [handle] = await waitingRunners(1);
    return handle as WorkflowHandle;
  }
  async function pending(
    except: ReadonlySet<string>,
    place = PLACE,
    by = completer,
  ): Promise<string[]> {
    const found: string[] = [];
    for await (const { workflowId, activityId } of by.pendingWaits(place, except)) {
      expect(activityId).toBe('ended/pod-1');
      found.push(workflowId);
    }
    return found;
  }

  test('a wait is completed once; then nothing waits', async () => {
    const handle = await waitingRunner();
    await completer.signalPodState(handle.workflowId, { uid: 'u-1', state: 'busy' });
    expect(await completer.complete(handle.workflowId, 'ended/pod-1', POD)).toBe(true);
    expect(await handle.result()).toEqual({ pod: SEEN, states: [{ uid: 'u-1', state: 'busy' }] });
    expect(await completer.complete(handle.workflowId, 'ended/pod-1', POD)).toBe(false);
  });

  test('nothing waits: an unknown workflow, another condition; a signal without a receiver is tolerated', async () => {
    const handle = await waitingRunner();
    expect(await completer.complete('runner-nobody', 'ended/pod-1', POD)).toBe(false);
    expect(await completer.complete(handle.workflowId, 'online/pod-1', POD)).toBe(false);
    await completer.signalPodState('runner-nobody', { uid: 'u-1', state: 'idle' });
    await handle.terminate();
  });

  test('finds the pending waits, except those of observed pods, of other locations and of other queues', async () => {
    const handles = await waitingRunners(40); // more than are looked at in one go
    const ids = handles.map(({ workflowId }) => workflowId);
    expect((await pending(new Set())).toSorted()).toEqual(ids.toSorted());
    const seen = new Set(ids.slice(1));
    expect(await pending(seen)).toEqual(ids.slice(0, 1));
    expect(
      await pending(
        new Set(),
        PLACE,
        createWaitCompleter({ client: () => client, taskQueue: 'another' }),
      ),
    ).toEqual([]);
    for (const other of [
      { cluster: 'another' },
      { installation: 'min' },
      { namespace: 'c' },
      { compute: 'process' as const },
    ])
      expect(await pending(new Set(), { ...PLACE, ...other })).toEqual([]);
    await Promise.all(handles.map(async (handle) => await handle.terminate()));
  });

  test('with several namespaces finds those of each, of its own installation only', async () => {
    const all: ServedLocation = {
      ...PLACE,
      cluster: randomUUID(),
      namespace: 'home',
      otherNamespaces: ['ci'],
    };
    const { otherNamespaces: _others, ...home } = all;
    const [[here], [there], ...elsewhere] = await Promise.all([
      waitingRunners(1, home),
      waitingRunners(1, { ...home, namespace: 'ci' }),
      waitingRunners(1, { ...home, installation: 'mine-too' }),
      waitingRunners(1, { ...home, namespace: 'ci-2' }),
    ]);
    expect(new Set(await pending(new Set(), all))).toEqual(
      new Set([here?.workflowId, there?.workflowId]),
    );
    await Promise.all(
      [here, there, ...elsewhere.flat()].map(async (handle) => await handle?.terminate()),
    );
  });

  test('a wait that must read again is retried, and not a failure of its workflow', async () => {
    const handle = await waitingRunner();
    await completer.requestRecheck(handle.workflowId, 'ended/pod-1', 'not listed');
    const activity = async () => (await handle.describe()).raw.pendingActivities?.[0];
    await until(
      'a second look',
      async () => (await activity())?.attempt === 2 && (await pending(new Set())).length === 1,
    );
    expect((await activity())?.lastFailure?.message).toBe('not listed');
    expect(await completer.complete(handle.workflowId, 'ended/pod-1', POD)).toBe(true);
    expect(await handle.result()).toEqual({ pod: SEEN, states: [] });
    await completer.requestRecheck(handle.workflowId, 'ended/pod-1', 'nobody waits');
  });

  test('a change that several workers observe is one event in history; the next is another, and so is one that cannot be identified', async () => {
    const handle = await waitingRunner();
    const second = createWaitCompleter({ client: () => client, taskQueue });
    for (const id of ['u-1/busy/12:00:01', 'u-1/busy/12:00:03', undefined]) {
      await Promise.all(
        [completer, second].map(
          async (by) =>
            await by.signalPodState(handle.workflowId, { uid: 'u-1', state: 'busy' }, id),
        ),
      );
    }
    await completer.complete(handle.workflowId, 'ended/pod-1', POD);
    expect(((await handle.result()) as { states: unknown[] }).states).toEqual(
      Array.from({ length: 4 }, () => ({ uid: 'u-1', state: 'busy' })),
    );
  });

  test('a drain that the SDK rejects because there is no handler is sent as a signal', async () => {
    const handle = await waitingRunner();
    const environment = new MockActivityEnvironment({}, { client });
    expect(
      await environment.run(
        async () =>
          await drainRunners({
            runners: [{ workflowId: handle.workflowId, reason: 'an old template' }],
          }),
      ),
    ).toMatchObject({ ended: [] });
    const { events } = await handle.fetchHistory();
    expect(
      events
        ?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName)
        .filter((name) => name !== undefined),
    ).toEqual(['cancel']);
    await handle.terminate();
  });

  test('while Temporal is unreachable it throws, so that the watcher retries', async () => {
    const lost = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
    const away = createWaitCompleter({ client: () => lost, taskQueue });
    // The client itself tries for a while first.
    const soon = async (call: () => Promise<unknown>): Promise<unknown> =>
      await lost.withDeadline(Date.now() + 300, call);
    await expect(soon(async () => await away.complete('w', 'ended/pod-1', POD))).rejects.toThrow(
      /./,
    );
    await expect(
      soon(async () => await away.signalPodState('w', { uid: 'u', state: 'idle' })),
    ).rejects.toThrow(/./);
    await expect(soon(async () => await pending(new Set(), PLACE, away))).rejects.toThrow(/./);
    await lost.connection.close();
  });
});
