/** How a pod is stopped: the reason for its supervisor, and its grace period. */
import { expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import type { Cancellation } from '../../../core/domain/cancellation.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { stopOptions } from '../../../workflows/runner/tearDown.ts';
import { RUNNING_POD, runnerState } from '../../support/runnerStates.ts';

const { online: _online, busy: _busy, ...SILENT } = RUNNING_POD;
/** SIGTERM lets the job run for 10 more minutes. */
const DRAINS: Partial<RunnerInput> = {
  onTerm: 'drain',
  stop: { drainTimeout: '10m', signalTimeout: '30s' },
};
const STOPS: Partial<RunnerInput> = {};

type Action = Parameters<typeof stopOptions>[1];
const STOP: Action = { mode: 'stop', overdue: false, unlessStarted: undefined };
const FORCE: Action = { ...STOP, mode: 'force' };

test.each<
  [
    what: string,
    input: Partial<RunnerInput>,
    by: Cancellation['by'] | undefined,
    action: Action,
    pod: PodView,
    expected: ReturnType<typeof stopOptions>,
  ]
>([
  ['the default meaning of SIGTERM needs no reason', STOPS, 'cancelled', STOP, RUNNING_POD, {}],
  ['… also without a request', STOPS, undefined, STOP, RUNNING_POD, {}],
  ['a timeout', STOPS, 'run_timeout', STOP, RUNNING_POD, { stopReason: 'timeout' }],
  ['a newer run', STOPS, 'superseded', STOP, RUNNING_POD, { stopReason: 'superseded' }],
  ['a drain', STOPS, 'drain', STOP, RUNNING_POD, { stopReason: 'drained' }],
  ['an idle runner', STOPS, 'idle_timeout', STOP, RUNNING_POD, { stopReason: 'drained' }],
  [
    'a cancellation if SIGTERM means a drain: with a reason, and without the drain timeout',
    DRAINS,
    'cancelled',
    STOP,
    RUNNING_POD,
    { stopReason: 'cancelled', gracePeriodSeconds: 40 },
  ],
  [
    'no request if SIGTERM means a drain: like a cancellation',
    DRAINS,
    undefined,
    STOP,
    RUNNING_POD,
    { stopReason: 'cancelled', gracePeriodSeconds: 40 },
  ],
  [
    'a drain if SIGTERM means a drain: the whole grace period',
    DRAINS,
    'drain',
    STOP,
    RUNNING_POD,
    { stopReason: 'drained' },
  ],
  ['a pod without a supervisor that reads reasons', STOPS, 'run_timeout', STOP, SILENT, {}],
  [
    'a pod that is only stopped if it has not started',
    STOPS,
    'run_timeout',
    { ...STOP, unlessStarted: true },
    RUNNING_POD,
    { unlessStarted: true },
  ],
  [
    'a forced stop: the shortest grace period that a kubelet honors',
    STOPS,
    'run_timeout',
    FORCE,
    RUNNING_POD,
    { gracePeriodSeconds: 1 },
  ],
  [
    'a pod that exceeded its grace period: no grace period',
    STOPS,
    'run_timeout',
    { ...FORCE, overdue: true },
    RUNNING_POD,
    { gracePeriodSeconds: 0 },
  ],
])('%s', (_what, input, by, action, pod, expected) => {
  const state = runnerState(input, pod);
  if (by !== undefined) state.cancel = { mode: 'stop', reason: 'why', by };
  expect(stopOptions(state, action)).toEqual(expected);
});
