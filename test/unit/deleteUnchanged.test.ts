/** A pod is deleted only if it has not changed since it was read. A changed pod is read and judged again. */
import { describe, expect, jest, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { getPod } from '../../activities/runner/pods.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
import type { ActivityPorts } from '../../activities/ports/activityPorts.ts';
import {
  deleteUnchanged,
  isLeftAlone,
  type PodRead,
} from '../../activities/compute/kubernetes/deleteUnchanged.ts';
import { toComputeError } from '../../activities/compute/kubernetes/errors.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { RUNNING_POD } from '../support/runnerStates.ts';

const NOW = Date.parse('2026-03-01T12:10:00Z');
const { startedAt: _, ...UNSTARTED } = RUNNING_POD;
const busy: PodView = { ...RUNNING_POD, busy: true };
const ended: PodView = { ...RUNNING_POD, ended: true };

describe('pods that are not deleted', () => {
  test.each<[what: string, view: PodView, unlessStarted: boolean, unlessBusy: boolean]>([
    ['not started', UNSTARTED, false, false],
    ['idle', RUNNING_POD, true, false],
    ['busy', busy, true, true],
    ['ended', ended, true, true],
    ['terminating, in every state', { ...busy, terminating: true }, false, false],
    [
      'reported as busy',
      {
        ...RUNNING_POD,
        busy: undefined,
        assumedBusyFrom: '2026-03-01T12:09:59Z',
      } as unknown as PodView,
      true,
      true,
    ],
    [
      'not yet reported as busy or idle',
      {
        ...RUNNING_POD,
        busy: undefined,
        assumedBusyFrom: '2026-03-01T12:10:01Z',
      } as unknown as PodView,
      true,
      false,
    ],
  ])('%s', (_what, view, unlessStarted, unlessBusy) =>
    expect([
      isLeftAlone(view, { unlessStarted: true }, NOW),
      isLeftAlone(view, { unlessBusy: true }, NOW),
    ]).toEqual([unlessStarted, unlessBusy]),
  );
});

describe('a deletion of a pod that was read', () => {
  const conflict = (message: string) =>
    toComputeError(
      Object.assign(new Error('refused'), {
        code: 409,
        body: JSON.stringify({ kind: 'Status', reason: 'Conflict', message }),
        headers: {},
      }),
      'delete pod p',
    );
  const changed = conflict(
    'Operation cannot be fulfilled on pods "p": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: 2',
  );
  const read = (...views: PodView[]): (() => Promise<PodRead>) => {
    let at = 0;
    return async () => ({
      view: views[Math.min(at, views.length - 1)] as PodView,
      resourceVersion: String(++at),
    });
  };

  test('has a precondition on its resource version', async () => {
    const ask = jest.fn(async () => 'terminating' as const);
    expect(await deleteUnchanged(read(RUNNING_POD), ask, { unlessBusy: true })).toBe('terminating');
    expect(ask.mock.calls).toEqual([['1']]);
  });

  test('a pod that became busy in between is not deleted', async () => {
    const ask = jest.fn(async () => {
      throw changed;
    });
    expect(await deleteUnchanged(read(RUNNING_POD, busy), ask, { unlessBusy: true })).toBe(busy);
    expect(ask).toHaveBeenCalledTimes(1);
  });

  test('a pod that keeps changing is reported after three seconds', async () => {
    const ask = jest.fn(async () => {
      throw changed;
    });
    let nowMs = NOW;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => (nowMs += 400));
    await expect(deleteUnchanged(read(RUNNING_POD), ask, { unlessBusy: true })).rejects.toBe(
      changed,
    );
    clock.mockRestore();
    // The clock is read twice for each.
    expect(ask).toHaveBeenCalledTimes(4);
  });

  test('another rejection is not treated as a change', async () => {
    const other = new ComputeError('unavailable', 'away');
    const ask = jest.fn(async () => {
      throw other;
    });
    await expect(deleteUnchanged(read(RUNNING_POD), ask, { unlessBusy: true })).rejects.toBe(other);
    expect(ask).toHaveBeenCalledTimes(1);
  });

  test('a pod that is already deleted', async () =>
    expect(
      await deleteUnchanged(
        async () => undefined,
        async () => 'terminating',
        {},
      ),
    ).toBe('deleted'));
});

test('a workflow that reads its pod gets it from the API server, never from the watch', async () => {
  const look = jest.fn(async () => RUNNING_POD);
  const ports = { compute: { getPod: look } } as unknown as ActivityPorts;
  const pod = { name: 'p', uid: 'u' };
  await new MockActivityEnvironment().run(async () => await getPod(ports, { pod }));
  expect(look.mock.calls).toMatchObject([[{ name: 'p', uid: 'u', live: true }]]);
});
