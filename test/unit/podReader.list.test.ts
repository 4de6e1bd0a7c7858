import { expect, test } from '@jest/globals';
import type { ApiObjects } from '../../activities/compute/kubernetes/apiObjects.ts';
import type { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { PodReader } from '../../activities/compute/kubernetes/podReader.ts';

test('a list from the cache fails while there is no current watch, without a request', async () => {
  let requests = 0;
  const api = { call: async () => void requests++ } as unknown as ApiServer;
  const objects = {
    namespaces: ['ci'],
    allOf: () => ['/api/v1/namespaces/ci/pods'],
  } as unknown as ApiObjects;
  const reader = new PodReader(api, objects, {
    installation: 'test',
    labelSelector: 'x',
    logger: { info: () => undefined, warn: () => undefined },
  });
  await expect(reader.list({ cached: true })).rejects.toMatchObject({ kind: 'unavailable' });
  expect(requests).toBe(0);
});
