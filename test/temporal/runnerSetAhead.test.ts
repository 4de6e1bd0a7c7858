/** Replace-ahead without a webhook: a runner tells its set that its job has started, and the set starts the successor. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { arrayFromPayloads, defaultPayloadConverter } from '@temporalio/common';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { SetRun } from '../support/setRun.ts';
import {
  runnerEventsSignal,
  type RunnerSetInput,
  type TimedRunnerEvent,
} from '../../core/contract/index.ts';

await describeWithLab('a set that starts replacements ahead', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  /** What the set was told of a runner, in order; told again it counts once. */
  async function toldOf(set: SetRun, workflowId: string): Promise<string[]> {
    const history = await set.handle.fetchHistory();
    const told = (history.events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => {
        if (signal?.signalName !== runnerEventsSignal.name) return [];
        const [{ events }] = arrayFromPayloads(defaultPayloadConverter, signal.input?.payloads) as [
          { events: TimedRunnerEvent[] },
        ];
        return events.filter((one) => one.workflowId === workflowId).map(({ kind }) => kind);
      },
    );
    return [...new Set(told)];
  }

  // The list is far off: nothing but the runner's own word can tell in time.
  const quiet = { queueCheck: '0s', intervals: { relist: '1h' } } as const;

  test.each<[string, Partial<RunnerSetInput>]>([
    ['a fixed number, one ahead', { replicas: 1, replaceAhead: 1 }],
    ['one idle runner that is kept', { minIdle: 1, max: 2 }],
  ])('%s: the successor is online during the job, and serves after it', async (_what, size) => {
    const set = await SetRun.start({ world, compute, ci }, { ...size, ...quiet });
    const { runners } = await set.comesTo({ idle: 1 });
    const [first] = runners;
    if (first === undefined) throw new Error('no runner');
    set.startJob(first);
    const both = await set.comesTo({ idle: 1, busy: 1 });
    expect(both.runners.find(({ state }) => state === 'busy')?.workflowId).toBe(first.workflowId);
    set.endJob(first);
    const after = await set.settles({ idle: 1 });
    expect(after.runners[0]?.workflowId).not.toBe(first.workflowId);
    expect(compute.created).toHaveLength(2);
    expect(await toldOf(set, first.workflowId)).toEqual(['online', 'busy', 'ended']);
    await set.end();
    expect({ pods: compute.pods.size, registrations: ci.registrations.size }).toEqual({
      pods: 0,
      registrations: 0,
    });
  });

  test('runners of a set without ready runners send no additional signals', async () => {
    const set = await SetRun.start({ world, compute, ci }, { replicas: 1, ...quiet });
    const { runners } = await set.comesTo({ idle: 1 });
    const [first] = runners;
    if (first === undefined) throw new Error('no runner');
    set.startJob(first);
    await world.client.workflow.getHandle(first.workflowId).query('status');
    set.endJob(first);
    await set.reaches(
      'its successor',
      (status) => status.runners.length === 1 && status.runners[0]?.workflowId !== first.workflowId,
    );
    expect(await toldOf(set, first.workflowId)).toEqual(['online', 'ended']);
    await set.end();
  });
});
