/** The pod state that a workflow gets does not depend on its own clock. */
import { expect, test } from '@jest/globals';
import { forWorkflow } from '../../../activities/runner/pods.ts';
import { RUNNING_POD, runnerState } from '../../support/runnerStates.ts';
import { recordPod } from '../../../workflows/runner/podWaits.ts';
import type { PodSnapshot } from '../../../core/domain/pod.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const ago = (ms: number): string => new Date(NOW - ms).toISOString();
const { startedAt: _startedAt, ...pending } = RUNNING_POD;
const { busy: _busy, ...silent } = RUNNING_POD;
const problem = (kind: 'image_pull' | 'invalid_image', sinceMs: number): PodSnapshot => ({
  ...pending,
  problem: { kind, message: 'm', since: ago(sinceMs) },
});

test.each([
  [problem('image_pull', 29_999), undefined],
  [problem('image_pull', 30_000), true],
  [problem('invalid_image', 0), true],
])('a problem with the image counts after 30 s, an invalid name at once', (pod, persistent) => {
  expect(forWorkflow(pod, NOW).problem?.persistent).toBe(persistent);
});

test.each([
  [1, undefined],
  [0, true],
])('a new pod that may be busy is busy at the time of the worker, in %d ms', (inMs, busy) => {
  const assumed = { ...silent, assumedBusyFrom: ago(-inMs) };
  const told = forWorkflow(assumed, NOW);
  expect(told.busy).toBe(busy);
  // The workflow's clock is hours ahead of the time from which it may be busy.
  const state = runnerState({}, RUNNING_POD);
  recordPod(state, told);
  expect(state.runner.busySince !== undefined).toBe(busy === true);
});
