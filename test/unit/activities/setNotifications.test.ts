/** Events that activities send to the set in addition to their work: when, and what happens if that fails. */
import { describe, expect, test } from '@jest/globals';
import { CompleteAsyncError } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { awaitPod } from '../../../activities/runner/pods.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { tearDown } from '../../../activities/runner/tearDown.ts';
import type { PodDeletion, SetNotification } from '../../../core/activities/index.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const identity = { workflowId: 'runner-linux-aaaaaaaaaa', firstRunId: 'run', attempt: 1 };
const word: SetNotification = {
  set: 'linux',
  event: { kind: 'online', workflowId: identity.workflowId, runnerName: 'linux-aaaaaaaaaa' },
};

function stage(tell: () => Promise<void> = async () => undefined) {
  const compute = new FakeCompute();
  const did: string[] = [];
  const ports: ActivityPorts = { compute, ciServers: new FakeCiServer() };
  const inActivity = async <T>(attempt: number, run: () => Promise<T>): Promise<T> =>
    await new MockActivityEnvironment(
      // The caller is the runner's own workflow.
      { attempt, workflowExecution: { workflowId: identity.workflowId, runId: 'r' } },
      { logger: new DefaultLogger('ERROR', () => undefined) },
    ).run<[], T, () => Promise<T>>(run);
  const telling = async ({ event: { kind } }: SetNotification): Promise<void> => {
    did.push(`told ${kind}`);
    await tell();
  };
  return { compute, ports, did, inActivity, telling };
}

describe('a wait that reports its first result', () => {
  const wait = async (
    attempt: number,
    tell?: () => Promise<void>,
  ): Promise<{ did: string[]; outcome: unknown }> => {
    const { compute, ports, did, inActivity, telling } = stage(tell);
    const pod = await compute.createPod({
      identity,
      labels: {},
      terminationGracePeriodSeconds: 30,
    });
    const outcome = await inActivity(
      attempt,
      async () => await awaitPod(ports, telling, { pod, until: 'ended', notify: word }),
    ).catch((error: unknown) => error);
    return { did, outcome };
  };

  test.each([1, 2, 3])('attempt %d reports, and continues waiting', async (attempt) => {
    const { did, outcome } = await wait(attempt);
    expect(did).toEqual(['told online']);
    expect(outcome).toBeInstanceOf(CompleteAsyncError);
  });

  test('a later re-sync reports nothing', async () => {
    const { did, outcome } = await wait(4);
    expect(did).toEqual([]);
    expect(outcome).toBeInstanceOf(CompleteAsyncError);
  });

  test('a failed report is retried', async () => {
    const { outcome } = await wait(
      1,
      async () => await Promise.reject(new Error('Temporal is away')),
    );
    expect(outcome).toMatchObject({ message: 'Temporal is away' });
  });
});

describe('a teardown that reports the end', () => {
  const end = async (
    early: boolean,
    state: PodDeletion,
    tell?: () => Promise<void>,
  ): Promise<{ did: string[]; outcome: unknown }> => {
    const { compute, ports, did, inActivity, telling } = stage(tell);
    const ref = await compute.createPod({
      identity,
      labels: {},
      terminationGracePeriodSeconds: 30,
    });
    compute.deletePod = async () => {
      await Promise.resolve();
      did.push('deleted');
      return state;
    };
    const outcome = await inActivity(
      1,
      async () =>
        await tearDown(ports, telling, {
          identity,
          pod: { ref },
          secret: true,
          notify: { ...word, early },
        }),
    ).catch((error: unknown) => error);
    return { did, outcome };
  };

  test.each<[string, boolean, PodDeletion, string[]]>([
    ['early: reported before the pod is gone', true, 'terminating', ['told online', 'deleted']],
    ['otherwise reported when it is gone', false, 'deleted', ['deleted', 'told online']],
    ['not reported while it exists', false, 'terminating', ['deleted']],
  ])('%s', async (_what, early, state, expected) => {
    expect(await end(early, state)).toEqual({ did: expected, outcome: state });
  });

  test.each([true, false])(
    'fails if its report fails (early: %s), and its work is repeated',
    async (early) => {
      const { did, outcome } = await end(
        early,
        'deleted',
        async () => await Promise.reject(new Error('Temporal is away')),
      );
      expect(did).toContain('deleted');
      expect(outcome).toMatchObject({ message: 'Temporal is away' });
    },
  );
});
