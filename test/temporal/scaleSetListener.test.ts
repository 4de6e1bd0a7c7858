/** The workflow of a scale set's listener, with activities whose results the test decides. */
import { cancellationSignal, heartbeat } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { UnknownCredentialError } from '../../activities/ports/ciServer.ts';
import type { ActivityPorts } from '../../activities/ports/activityPorts.ts';
import type { CloseScaleSetInput, ListenInput, ListenResult } from '../../core/activities/index.ts';
import {
  SCALE_SET_LISTENER_WORKFLOW,
  listenerChangedSignal,
  scaleSetListenerWorkflowId,
  type ScaleSetListenerInput,
} from '../../core/contract/index.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const CURSOR = { sessionId: 's-1', openedAt: 7, lastMessageId: 3 };

await describeWithLab('the listener of a scale set', { temporal: true }, (lab) => {
  let world: HoldfastWorld;
  let before: ScaleSetListenerInput;
  let listens: ListenInput[];
  let closes: CloseScaleSetInput[];

  beforeEach(async () => {
    // No worker has the credential: it was removed from the configuration.
    const ciServers = {
      get: () => {
        throw new UnknownCredentialError('unknown credential');
      },
    };
    world = await holdfastWorld(lab.temporal?.address ?? '', {
      compute: new FakeCompute(),
      ciServers,
    } as unknown as ActivityPorts);
    before = {
      set: `set-${randomUUID().slice(0, 8)}`,
      scope: { kind: 'organization', name: 'acme' },
      credential: 'default',
      group: 'default',
      labels: ['gpu'],
      name: 'gpu',
    };
    listens = [];
    closes = [];
  });
  afterEach(async () => await world.close());

  const onListen = (answer: () => ListenResult | Promise<ListenResult>): void => {
    const record = (input: ListenInput): unknown => {
      listens.push(input);
      return answer();
    };
    world.pretences.push({ activity: 'listen', answer: record });
  };
  const onClose = (answer: () => void | Promise<void>): void => {
    const record = (input: CloseScaleSetInput): unknown => {
      closes.push(input);
      return answer();
    };
    world.pretences.push({ activity: 'closeScaleSet', answer: record });
  };
  const isCancelled = async (): Promise<void> => {
    const timer = setInterval(heartbeat, 100);
    const signal = cancellationSignal();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    clearInterval(timer);
  };
  const isRevoked = (): void => {
    throw ApplicationFailure.nonRetryable('the credential was rejected', 'CredentialsRejected');
  };
  const start = async (): Promise<WorkflowHandle> =>
    await world.client.workflow.start(SCALE_SET_LISTENER_WORKFLOW, {
      workflowId: scaleSetListenerWorkflowId(before.set),
      taskQueue: world.taskQueue,
      args: [before],
      memo: { input: 'x' },
    });
  /** Starts a listener with a session, and changes it. */
  const startAndChange = async (
    change: Partial<ScaleSetListenerInput>,
  ): Promise<WorkflowHandle> => {
    onListen(async () => {
      await isCancelled();
      return { kind: 'continue', cursor: CURSOR };
    });
    const handle = await start();
    await until('it to listen', async () => listens.length === 1);
    onListen(() => ({ kind: 'ended', remove: false }));
    await handle.signal(listenerChangedSignal, { input: { ...before, ...change } });
    return handle;
  };

  test('a scale set that cannot be removed does not keep the next one from being read', async () => {
    onClose(isRevoked);
    const handle = await startAndChange({ name: 'other', credential: 'new' });
    const { runId } = await handle.describe();
    await handle.result();
    expect(closes).toEqual([{ listener: before, cursor: CURSOR, remove: true }]);
    expect(listens.slice(1)).toEqual([
      { listener: { ...before, name: 'other', credential: 'new' } },
    ]);
    const { events = [] } = await world.client.workflow
      .getHandle(handle.workflowId, runId)
      .fetchHistory();
    const limits = events?.flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'closeScaleSet'
        ? [Number(scheduled.scheduleToCloseTimeout?.seconds)]
        : [],
    );
    expect(limits).toEqual([300]);
  });

  test('another credential opens another session, and the scale set stays', async () => {
    onClose(() => undefined);
    await (await startAndChange({ credential: 'new' })).result();
    expect(closes).toEqual([{ listener: before, cursor: CURSOR, remove: false }]);
    expect(listens.slice(1)).toEqual([{ listener: { ...before, credential: 'new' } }]);
  });

  test('another credential continues the session that the previous one cannot close', async () => {
    onClose(isRevoked);
    await (await startAndChange({ credential: 'new' })).result();
    expect(closes.map(({ remove }) => remove)).toEqual([false]);
    expect(listens.slice(1)).toEqual([
      { listener: { ...before, credential: 'new' }, cursor: CURSOR },
    ]);
  });

  test('names in another case are the same scale set', async () => {
    const change = { scope: { kind: 'organization', name: 'Acme' }, name: 'GPU' } as const;
    await (await startAndChange(change)).result();
    expect(closes).toEqual([]);
    expect(listens.slice(1)).toEqual([{ listener: { ...before, ...change }, cursor: CURSOR }]);
  });

  test('a change interrupts the removal of a scale set whose credential no worker has', async () => {
    onListen(() => ({ kind: 'ended', remove: true }));
    // The real activity fails again and again.
    const handle = await start();
    await until('the removal to fail', async () => {
      const { pendingActivities } = (await handle.describe()).raw;
      return (pendingActivities ?? []).some(
        ({ activityType, lastFailure }) =>
          activityType?.name === 'closeScaleSet' && lastFailure !== null,
      );
    });
    onListen(() => ({ kind: 'ended', remove: false }));
    await handle.signal(listenerChangedSignal, { input: { ...before, credential: 'new' } });
    await handle.result();
    expect(listens.slice(1)).toEqual([{ listener: { ...before, credential: 'new' } }]);
  });

  test('a listener whose scale set cannot be removed completes', async () => {
    onListen(() => ({ kind: 'ended', remove: true }));
    onClose(isRevoked);
    await (await start()).result();
    expect(closes).toEqual([{ listener: before, remove: true }]);
  });
});
