/** Ends of a runner that lose a job that the CI server may run again. */
import { expect, test } from '@jest/globals';
import { jobToRerun } from '../../../workflows/runner/rerunLostJob.ts';
import type { EndFacts } from '../../../workflows/runner/endFacts.ts';
import { lostJobCause } from '../../../workflows/runner/runnerLoss.ts';
import type { PodSnapshot } from '../../../core/domain/pod.ts';

const ISO = '2026-01-01T00:00:00.000Z';
const pod: PodSnapshot = {
  name: 'p',
  uid: 'u',
  scheduled: true,
  createdAt: ISO,
  startedAt: ISO,
  ended: true,
  deleted: false,
  terminating: true,
  disruptionReason: 'EvictionByEvictionAPI',
  exit: { code: 143, oomKilled: false },
};
const busy: EndFacts = {
  pod,
  stoppedByHoldfast: false,
  ephemeral: true,
  kind: 'github',
  checkpoints: false,
  started: true,
  wasOnline: true,
  wasRegistered: true,
  hadJob: true,
  busyAtEnd: true,
  jobSucceeded: false,
  jobInterrupted: false,
  removal: 'busy',
  onEviction: 'fail',
  neverStartedInARow: 0,
  shortLivedInARow: 1,
};
const idle = { hadJob: false, busyAtEnd: false, removal: 'removed' } as const;
const drain = { mode: 'drain', reason: '', by: 'drain' } as const;
const exit = (more: Partial<NonNullable<PodSnapshot['exit']>>): Partial<EndFacts> => ({
  pod: { ...pod, exit: { code: 143, oomKilled: false, ...more } },
});
const { exit: _exit, disruptionReason: _reason, ...vanished } = pod;

test.each<[string, Partial<EndFacts>, string | undefined]>([
  ['evicted', {}, 'evicted'],
  ['evicted, and replaced', { onEviction: 'replace' }, 'evicted'],
  ['preempted', { pod: { ...pod, disruptionReason: 'PreemptionByScheduler' } }, 'preempted'],
  ['node lost', { pod: { ...pod, disruptionReason: 'DeletionByTaintManager' } }, 'node_lost'],
  ['pod deleted by a third party', { pod: { ...vanished, deleted: true } }, 'deleted_externally'],
  ['evicted while its set drains it', { cancel: drain }, 'evicted'],
  ['a static runner, evicted', { ephemeral: false }, 'evicted'],
  ['recorded as interrupted', { ...idle, ...exit({ record: { job: 'interrupted' } }) }, 'evicted'],
  ['idle', { ...idle, ...exit({ record: { job: 'none' } }) }, undefined],
  ['its job had completed', exit({ code: 0, record: { job: 'completed' } }), undefined],
  ['out of memory', exit({ code: 137, oomKilled: true }), undefined],
  ['timed out', exit({ record: { job: 'interrupted', reason: 'timeout' } }), undefined],
  [
    'evicted because of its own limit, such as emptyDir',
    { pod: { ...vanished, terminating: false, reason: 'Evicted' } },
    undefined,
  ],
  [
    'evicted because of node pressure',
    { pod: { ...pod, reason: 'Evicted', disruptionReason: 'TerminationByKubelet' } },
    'evicted',
  ],
  ['its pod’s deadline', { pod: { ...pod, reason: 'DeadlineExceeded' } }, undefined],
  ['stopped by a user', { cancel: { mode: 'stop', reason: '', by: 'cancelled' } }, undefined],
  ['killed by a user', { cancel: { mode: 'force', reason: '', by: 'cancelled' } }, undefined],
  ['its job timed out', { cancel: { mode: 'stop', reason: '', by: 'run_timeout' } }, undefined],
  ['stopped by Holdfast', { stoppedByHoldfast: true }, undefined],
  ['a failed step', { failure: { cause: 'pending_timeout', message: '' } }, undefined],
  ['a plain command', { kind: 'command' }, undefined],
  [
    'a failure of the runner',
    { pod: { ...vanished, terminating: false, exit: { code: 1, oomKilled: false } } },
    undefined,
  ],
])('%s', (_what, facts, cause) => {
  expect(lostJobCause({ ...busy, ...facts })).toBe(cause);
});

const failedJob = { id: '1', repository: 'acme/web' };
const running = { key: '2/1', repository: 'acme/web' };
const failedAt = (ms: number) => ({
  jobs: {},
  failedJob,
  jobFailedAt: Date.parse(ISO) + ms,
  pod: { ...pod, terminationRequestedAt: ISO },
});
test.each([
  ['the running job', { ...failedAt(0), jobs: { running } }, { jobInterrupted: true }, '2'],
  ['the job that failed when the pod was stopped', failedAt(0), { jobInterrupted: true }, '1'],
  [
    'no known job, because one failed before that,',
    failedAt(-1),
    { jobInterrupted: true },
    undefined,
  ],
  ['no job', failedAt(0), { jobInterrupted: false }, undefined],
  [
    'the only job of an ephemeral runner, which failed before that by a slow clock,',
    failedAt(-30_000),
    { ephemeral: true, jobInterrupted: true },
    '1',
  ],
  [
    'the only job of an ephemeral runner, which GitHub ended as unreachable long before,',
    failedAt(-20 * 60_000),
    { ephemeral: true, jobInterrupted: false },
    '1',
  ],
])('%s runs again', (_what, runner, facts, id) => {
  expect(jobToRerun(runner as never, { ephemeral: false, ...facts })?.id).toBe(id);
});
