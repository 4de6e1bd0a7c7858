/** How a runner's container ended, if the supervisor's record and the kubelet differ. */
import type { V1Pod } from '@kubernetes/client-node';
import { describe, expect, test } from '@jest/globals';
import { toPodView } from '../../activities/compute/kubernetes/podView.ts';
import { lossCause } from '../../workflows/runner/runnerLoss.ts';

const NOW = '2026-03-01T12:00:00Z';
const LATER = '2026-03-01T12:00:10Z';

/** A pod whose container ended with this exit code and record. */
function ended(
  exitCode: number,
  record: Record<string, unknown> | string,
  more: { reason?: string; spec?: object } = {},
): V1Pod {
  const message =
    typeof record === 'string'
      ? record
      : JSON.stringify({ signal: null, reason: null, startedAt: NOW, endedAt: LATER, ...record });
  const terminated = {
    exitCode,
    reason: 'Error',
    startedAt: NOW,
    finishedAt: LATER,
    message,
    ...more,
  };
  return {
    metadata: { name: 'runner-a', uid: 'u-1', creationTimestamp: NOW },
    spec: { containers: [], nodeName: 'n1', ...more.spec },
    status: { phase: 'Failed', containerStatuses: [{ name: 'runner', state: { terminated } }] },
  } as unknown as V1Pod;
}

describe('the recorded exit status', () => {
  test.each([
    [
      'takes precedence over that of a supervisor that had to kill itself',
      ended(137, { exitCode: 3 }),
      { code: 3, oomKilled: false },
    ],
    [
      'takes precedence over an OOM kill during the cleanup',
      ended(137, { exitCode: 0 }, { reason: 'OOMKilled' }),
      { code: 0, oomKilled: false },
    ],
    [
      'of an OOM-killed command',
      ended(137, { exitCode: 137, signal: 'SIGKILL' }, { reason: 'OOMKilled' }),
      { code: 137, oomKilled: true },
    ],
    [
      'is usually that of the container',
      ended(143, { exitCode: 143, reason: 'evicted' }),
      { code: 143, oomKilled: false },
    ],
    [
      'is absent without a record',
      ended(137, 'no record'),
      { code: 137, oomKilled: false, message: 'no record' },
    ],
    ['is ignored if no process can have it', ended(137, { exitCode: 256 }), { code: 137 }],
    [
      'is ignored if it is not a whole number from 0 on',
      ended(137, { exitCode: -0.5 }),
      { code: 137 },
    ],
  ])('%s', (_, pod, exit) => {
    expect(toPodView(pod, NOW).exit).toMatchObject(exit);
  });

  test('the view has the reason of a failed start', () => {
    expect(
      toPodView(ended(127, { exitCode: 127, startedAt: null, error: 'spawn /nope ENOENT' }), NOW)
        .exit,
    ).toMatchObject({ code: 127, message: 'spawn /nope ENOENT', record: {} });
  });
});

describe('the port of its probes is in use', () => {
  const record = {
    exitCode: 127,
    startedAt: null,
    error: 'listen EADDRINUSE: address already in use :::23456',
  };

  test("on the node's network: it never started, and counts as lost, not failed, because a replacement has another port", () => {
    const view = toPodView(ended(127, record, { spec: { hostNetwork: true } }), NOW);
    expect(view).toMatchObject({ ended: true });
    expect([view.exit, view.startedAt, lossCause(view)]).toEqual([
      undefined,
      undefined,
      'agent_lost',
    ]);
  });

  test.each([
    ['in its own network the pod counts as failed', ended(127, record)],
    [
      'another failure to start is not caused by ports',
      ended(127, { ...record, error: 'spawn /nope ENOENT' }, { spec: { hostNetwork: true } }),
    ],
    [
      'exit code 127 of the command is not caused by ports',
      ended(127, { exitCode: 127 }, { spec: { hostNetwork: true } }),
    ],
  ])('%s', (_, pod) => {
    expect(toPodView(pod, NOW)).toMatchObject({ startedAt: NOW, exit: { code: 127 } });
  });
});
