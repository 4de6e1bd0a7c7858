/** A wait that starts while the API server is unreachable. */
import { expect, test } from '@jest/globals';
import { CompleteAsyncError } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { awaitPod } from '../../../activities/runner/pods.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type { PodCondition } from '../../../core/domain/podConditions.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const POD: PodView = {
  name: 'runner-a',
  uid: 'u',
  workflowId: 'a',
  scheduled: true,
  createdAt: '2026-01-01T00:00:00Z',
  ended: false,
  deleted: false,
  terminating: false,
};

async function wait(until: PodCondition, seen: PodView | 'deleted' | undefined): Promise<unknown> {
  const compute = Object.assign(new FakeCompute(), {
    isReachable: () => false,
    getCachedPod: () => seen,
    getPod: async () => await Promise.reject(new Error('it was asked')),
  });
  const ports: ActivityPorts = { compute, ciServers: new FakeCiServer() };
  return await new MockActivityEnvironment()
    .run(async () => await awaitPod(ports, async () => undefined, { pod: POD, until }))
    .catch((error: unknown) => error);
}

test('an event that the watch has already reported is the result, and not reported again', async () => {
  expect(
    await wait('ended', { ...POD, ended: true, exit: { code: 0, oomKilled: false } }),
  ).toMatchObject({ uid: 'u', ended: true, exit: { code: 0 } });
  expect(await wait('ended', { ...POD, ended: true })).not.toHaveProperty('workflowId');
  expect(await wait('deleted', 'deleted')).toMatchObject({ uid: 'u', deleted: true });
});

test.each<[what: string, PodView | undefined]>([
  ['it was never seen', undefined],
  ['it was running when it was last seen', POD],
])('%s: reported by the watch', async (_what, seen) => {
  expect(await wait('ended', seen)).toBeInstanceOf(CompleteAsyncError);
});
