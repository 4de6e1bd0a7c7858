import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { requestDeletion } from '../../activities/compute/kubernetes/requestDeletion.ts';
import type { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';

const RUNNING: V1Pod = {
  metadata: { name: 'p', uid: 'u' },
  spec: { containers: [{ name: 'runner' }], nodeName: 'lost' },
  status: {
    phase: 'Running',
    containerStatuses: [
      {
        name: 'runner',
        image: '',
        imageID: '',
        ready: true,
        restartCount: 0,
        state: { running: { startedAt: new Date(0) } },
      },
    ],
  },
};

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Nodes whose kubelets never report a changed pod. */
test('of many concurrent stop requests that no kubelet confirms, most wait for three seconds, because others need the slots', async () => {
  let deleted = 0;
  const stated = new Map<string, number>();
  const api = {
    call: async ({ verb, path }: { verb: string; path: string }) => {
      if (verb === 'delete') deleted++;
      else stated.set(path, (stated.get(path) ?? 0) + 1);
      return RUNNING;
    },
  } as unknown as ApiServer;
  const stops = Array.from(
    { length: 300 },
    async (_none, index) =>
      await requestDeletion(
        api,
        `/p${index}`,
        { name: 'p', uid: 'u', namespace: 'ci' },
        { stopReason: 'cancelled' },
      ),
  );
  await jest.advanceTimersByTimeAsync(15_000);
  await Promise.all(stops);
  expect(deleted).toBe(300);
  const times = Map.groupBy(stated.values(), (each) => each);
  expect([...times].map(([each, { length }]) => [each, length])).toEqual([
    [5, 100],
    [3, 200],
  ]);
});
