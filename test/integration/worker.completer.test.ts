import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CompleteAsyncError } from '@temporalio/activity';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { WaitCompleter } from '../../activities/ports.ts';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createCompleter } from '../../worker/completer.ts';
import { drainRunners } from '../../activities/sets/drainRunners.ts';
import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import type { PodView } from '../../core/domain/pod.ts';

Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'ERROR', forward: {} } } });
const POD: PodView = { name: 'pod-1', uid: 'u-1', workflowId: 'w', scheduled: true, createdAt: '2026-01-01T00:00:00Z', ended: true, gone: false, terminating: false };

await describeWithLab('completing waits', { temporal: true }, (lab) => {
  const taskQueue = `it's-${randomUUID().slice(0, 8)}`; // a quote, to be quoted in queries
  let connection: NativeConnection;
  let client: Client;
  let worker: Worker;
  let running: Promise<void>;
  let completer: WaitCompleter;

  beforeAll(async () => {
    connection = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
    client = new Client({ connection: await Connection.connect({ address: lab.temporal?.address ?? '' }) });
    completer = createCompleter({ client, taskQueue });
    const wait = async (): Promise<never> => await Promise.reject(new CompleteAsyncError());
    worker = await Worker.create({ connection, taskQueue, workflowsPath: fileURLToPath(new URL('../support/waitingRunner.ts', import.meta.url)), activities: { wait } });
    running = worker.run();
  });
  afterAll(async () => {
    worker.shutdown();
    await running;
    await connection.close();
    await client.connection.close();
  });

  /** Runners whose waits have given their slots back. */
  async function waitingRunners(count: number): Promise<WorkflowHandle[]> {
    const start = async (): Promise<WorkflowHandle> => await client.workflow.start(RUNNER_WORKFLOW, { taskQueue, workflowId: `runner-${randomUUID().slice(0, 8)}` });
    const handles = await Promise.all(Array.from({ length: count }, start));
    let found: string[] = [];
    await until('the waits to be pending', async () => (found = await pending(new Set())).length === count, () => found.join());
    return handles;
  }
  async function waitingRunner(): Promise<WorkflowHandle> {
    const [handle] = await waitingRunners(1);
    return handle as WorkflowHandle;
  }
  async function pending(except: ReadonlySet<string>, by = completer): Promise<string[]> {
    const found: string[] = [];
    for await (const { workflowId, activityId } of by.pendingWaits(except)) {
      expect(activityId).toBe('ended/pod-1');
      found.push(workflowId);
    }
    return found;
  }

  test('a wait is completed once; nobody waits after that', async () => {
    const handle = await waitingRunner();
    await completer.signalPodState(handle.workflowId, { uid: 'u-1', state: 'busy' });
    expect(await completer.complete(handle.workflowId, 'ended/pod-1', POD)).toBe(true);
    expect(await handle.result()).toEqual({ pod: POD, states: [{ uid: 'u-1', state: 'busy' }] });
    expect(await completer.complete(handle.workflowId, 'ended/pod-1', POD)).toBe(false);
  });

  test('nobody waits: an unknown workflow, another condition; a signal to nobody is tolerated', async () => {
    const handle = await waitingRunner();
    expect(await completer.complete('runner-nobody', 'ended/pod-1', POD)).toBe(false);
    expect(await completer.complete(handle.workflowId, 'online/pod-1', POD)).toBe(false);
    await completer.signalPodState('runner-nobody', { uid: 'u-1', state: 'idle' });
    await handle.terminate();
  });

  test('finds the waits that are pending, but not those of the pods that are seen, nor of another installation', async () => {
    const handles = await waitingRunners(40); // more than are looked at in one go
    const ids = handles.map(({ workflowId }) => workflowId);
    expect((await pending(new Set())).toSorted()).toEqual(ids.toSorted());
    const seen = new Set(ids.slice(1));
    expect(await pending(seen)).toEqual(ids.slice(0, 1));
    expect(await pending(new Set(), createCompleter({ client, taskQueue: 'another' }))).toEqual([]);
    await Promise.all(handles.map(async (handle) => await handle.terminate()));
  });

  test('a drain that the SDK refuses for want of a handler is no refusal by the runner: it goes as a signal', async () => {
    const handle = await waitingRunner();
    const environment = new MockActivityEnvironment({}, { client });
    expect(await environment.run(async () => await drainRunners({ runners: [{ workflowId: handle.workflowId, why: 'an old template' }] }))).toMatchObject({ gone: [] });
    const { events } = await handle.fetchHistory();
    expect(events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName).filter((name) => name !== undefined)).toEqual(['cancel']);
    await handle.terminate();
  });

  test('while Temporal is away it throws, so that the watcher tries again', async () => {
    const lost = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
    const away = createCompleter({ client: lost, taskQueue });
    // The client itself tries for a while first.
    const soon = async (call: () => Promise<unknown>): Promise<unknown> => await lost.withDeadline(Date.now() + 300, call);
    await expect(soon(async () => await away.complete('w', 'ended/pod-1', POD))).rejects.toThrow(/./);
    await expect(soon(async () => await away.signalPodState('w', { uid: 'u', state: 'idle' }))).rejects.toThrow(/./);
    await expect(soon(async () => await pending(new Set(), away))).rejects.toThrow(/./);
    await lost.connection.close();
  });
});
