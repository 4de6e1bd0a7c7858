import { expect, test } from '@jest/globals';
import { PendingDeletions } from '../../activities/compute/kubernetes/pendingDeletions.ts';

function counted(respond: () => Promise<'deleted' | 'terminating'>) {
  const requests = { times: 0 };
  return {
    requests,
    request: async () => {
      requests.times++;
      return await respond();
    },
  };
}

test('repeated requests are sent once for each pod, during and after the first', async () => {
  const deletions = new PendingDeletions();
  const { requests, request } = counted(async () => 'terminating');
  expect(await Promise.all([deletions.once('u1', request), deletions.once('u1', request)])).toEqual(
    ['terminating', 'terminating'],
  );
  expect(await deletions.once('u1', request)).toBe('terminating');
  expect(requests.times).toBe(1);
  await deletions.once('u2', request);
  expect(requests.times).toBe(2);
});

test('a pod that the watch has lost counts as deleted only if its deletion was requested', async () => {
  const deletions = new PendingDeletions();
  const { requests, request } = counted(async () => 'terminating');
  deletions.over('u1');
  expect(await deletions.once('u1', request)).toBe('terminating');
  deletions.over('u1');
  expect(await deletions.once('u1', request)).toBe('deleted');
  expect(requests.times).toBe(1);
});

test('drops the oldest of very many deletions', async () => {
  const deletions = new PendingDeletions();
  const { requests, request } = counted(async () => 'deleted');
  for (let pod = 0; pod <= 20_000; pod++) await deletions.once(`u${pod}`, request);
  await deletions.once('u1', request);
  expect(requests.times).toBe(20_001);
  await deletions.once('u0', request);
  expect(requests.times).toBe(20_002);
});

test('a failed deletion is requested again', async () => {
  const deletions = new PendingDeletions();
  await expect(
    deletions.once('u1', async () => await Promise.reject(new Error('503'))),
  ).rejects.toThrow('503');
  expect(await deletions.once('u1', async () => 'terminating')).toBe('terminating');
});
