import { describe, expect, test } from '@jest/globals';
import type { RunnerCause } from '../../../core/contract/index.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { EndFacts } from '../../../workflows/runner/endFacts.ts';
import { lossCause } from '../../../workflows/runner/runnerLoss.ts';
import { decideVerdict, type VerdictDecision } from '../../../workflows/runner/verdict.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const ISO = '2026-01-01T00:00:00.000Z';
const live: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: ISO,
  startedAt: ISO,
  ended: false,
  deleted: false,
  terminating: false,
};
const ended: PodView = { ...live, ended: true };
const exited = (code: number, more: Partial<PodView> = {}): PodView => ({
  ...ended,
  exit: { code, oomKilled: false },
  ...more,
});
const recordsJob = (job: 'none' | 'completed', more: Partial<PodView> = {}): PodView =>
  exited(0, {
    exit: { code: 0, oomKilled: false, record: { job } },
    online: false,
    busy: false,
    ...more,
  });
const killedForMemory: PodView = { ...ended, exit: { code: 137, oomKilled: true } };
const { startedAt: _startedAt, ...neverStarted } = ended;
const initFailed: PodView = {
  ...neverStarted,
  problem: { kind: 'config', message: 'init container prepare exited with code 1', since: ISO },
};
const vanished: PodView = { ...ended, deleted: true };
const evicted = exited(143, { terminating: true, disruptionReason: 'EvictionByEvictionAPI' });

/** An ephemeral runner that was online, and without a known job. */
const idle: EndFacts = {
  stoppedByHoldfast: false,
  ephemeral: true,
  kind: 'github',
  checkpoints: false,
  started: true,
  wasOnline: true,
  wasRegistered: true,
  hadJob: false,
  busyAtEnd: false,
  jobSucceeded: false,
  jobInterrupted: false,
  removal: 'removed',
  onEviction: 'fail',
  neverStartedInARow: 0,
  shortLivedInARow: 1,
};
const { removal: _, ...unasked } = idle;
const busy = { hadJob: true, busyAtEnd: true, removal: 'busy' } as const;
const drain = { mode: 'drain', reason: 'node maintenance', by: 'drain' } as const;
const cancelled = (
  mode: 'drain' | 'stop' | 'force',
  by: 'cancelled' | 'superseded' | 'idle_timeout' | 'run_timeout' = 'cancelled',
) => ({ cancel: { mode, by, reason: 'why' } });

const end = (outcome: string, cause?: RunnerCause) => ({ kind: 'end', outcome, cause });
const replace = (cause: RunnerCause, afterMs = 0) => ({ kind: 'replace', cause, afterMs });

type Row = [what: string, facts: Partial<EndFacts>, expected: object];

function check([, facts, expected]: Row, base: EndFacts = idle): void {
  const decision = decideVerdict({ ...base, ...facts });
  expect({ cause: undefined, ...decision }).toMatchObject(expected);
  expect(decision.message.length).toBeGreaterThan(10);
}

describe('the runner ended by itself', () => {
  test.each<Row>([
    ['exit 0 after a job', { pod: exited(0), hadJob: true }, end('succeeded')],
    [
      'an eviction after the success of its job',
      { pod: evicted, hadJob: true, jobSucceeded: true, removal: 'absent' },
      end('succeeded'),
    ],
    [
      '… of a static runner, which may have had another job',
      { pod: evicted, ...busy, jobSucceeded: true, ephemeral: false },
      end('errored', 'evicted'),
    ],
    [
      'a crash after the success of its job',
      { pod: exited(1), hadJob: true, jobSucceeded: true },
      end('failed'),
    ],
    [
      'exit 0, and it is unregistered, of a pod that does not report jobs: it had a job',
      { pod: exited(0), removal: 'absent' },
      end('succeeded'),
    ],
    [
      '… ended before it was seen online',
      { pod: exited(0), removal: 'absent', wasOnline: false },
      end('succeeded'),
    ],
    [
      '… and no registration is known',
      { pod: exited(0), removal: 'absent', wasOnline: false, wasRegistered: false },
      end('errored', 'never_registered'),
    ],
    [
      '… perhaps unregistered by Holdfast',
      { pod: exited(0), removal: 'absentAfterRetry' },
      end('errored', 'agent_lost'),
    ],
    [
      '… of a pod that reports jobs, and reported none',
      { pod: exited(0, { online: false, busy: false }), removal: 'absent' },
      end('errored', 'deleted_externally'),
    ],
    [
      'exit 0, and its record has no job: unregistered',
      { pod: recordsJob('none'), removal: 'absent' },
      end('errored', 'deleted_externally'),
    ],
    [
      '… unregistered, perhaps by Holdfast',
      { pod: recordsJob('none'), removal: 'absentAfterRetry' },
      end('errored', 'agent_lost'),
    ],
    [
      '… busy at the CI server',
      { pod: recordsJob('none'), removal: 'busy' },
      end('errored', 'agent_lost'),
    ],
    [
      '… although an event named a job',
      { pod: recordsJob('none'), hadJob: true },
      end('errored', 'agent_lost'),
    ],
    [
      'exit 0, and its record has a completed job',
      { pod: recordsJob('completed'), hadJob: true },
      end('succeeded'),
    ],
    [
      'exit 0, and still busy at GitHub: it had a job',
      { pod: exited(0), removal: 'busy' },
      end('succeeded'),
    ],
    [
      'exit 0 while idle, still registered: no job',
      { pod: exited(0) },
      end('errored', 'agent_lost'),
    ],
    [
      'exit 0 before it was online',
      { pod: exited(0), wasOnline: false },
      end('errored', 'never_registered'),
    ],
    [
      'ended by its startup probe, never online',
      {
        pod: {
          ...ended,
          exit: { code: 143, oomKilled: false, record: { reason: 'cancelled', job: 'none' } },
        },
        wasOnline: false,
      },
      end('errored', 'never_registered'),
    ],
    [
      'exit 3 before it was online',
      {
        pod: { ...ended, exit: { code: 3, oomKilled: false, record: { job: 'none' } } },
        wasOnline: false,
      },
      end('failed'),
    ],
    [
      'a static runner, exit 0',
      { pod: exited(0), ephemeral: false, hadJob: true },
      end('errored', 'agent_lost'),
    ],
    [
      'a static runner, exit 0, unregistered by a third party',
      { pod: exited(0), ephemeral: false, removal: 'absent' },
      end('errored', 'deleted_externally'),
    ],
    [
      'a static runner, exit 0, its job still running at the CI server',
      { pod: exited(0), ephemeral: false, removal: 'busy' },
      end('errored', 'agent_lost'),
    ],
    ['exit 1', { pod: exited(1) }, end('failed')],
    ['exit 1 during its job', { pod: exited(1), ...busy }, end('failed')],
    ['exit 7: version rejected', { pod: exited(7) }, end('errored', 'runner_deprecated')],
    ['out of memory', { pod: killedForMemory }, end('failed', 'oom_killed')],
    [
      'out of memory during its job, onEviction replace: never replaced',
      { pod: killedForMemory, ...busy, onEviction: 'replace' },
      end('failed', 'oom_killed'),
    ],
    [
      'out of memory on a node that evicts the pod',
      { pod: { ...killedForMemory, reason: 'Evicted' } },
      end('failed', 'oom_killed'),
    ],
    [
      'a deadline of the pod, idle: never replaced',
      { pod: { ...ended, reason: 'DeadlineExceeded' } },
      end('aborted', 'run_timeout'),
    ],
    [
      'an init container failed',
      { pod: initFailed, started: false, wasOnline: false },
      end('failed'),
    ],
    [
      'an init container failed during an eviction: lost',
      {
        pod: { ...initFailed, disruptionReason: 'EvictionByEvictionAPI' },
        started: false,
        wasOnline: false,
      },
      replace('evicted'),
    ],
    ['without any evidence', {}, end('errored', 'agent_lost')],
  ])('%s', (...row) => check(row));
});

describe('the runner was lost', () => {
  test.each<Row>([
    ['idle', { pod: vanished }, replace('deleted_externally')],
    [
      'idle, a static runner that had jobs before',
      { pod: vanished, ephemeral: false, hadJob: true },
      replace('deleted_externally'),
    ],
    ['idle, evicted', { pod: evicted }, replace('evicted')],
    [
      'busy according to its pod',
      { pod: evicted, busyAtEnd: true, hadJob: true },
      end('errored', 'evicted'),
    ],
    [
      'busy according to the CI server',
      { pod: evicted, removal: 'busy' },
      end('errored', 'evicted'),
    ],
    [
      'unregistered by a third party, while its record has no job',
      { pod: recordsJob('none', { disruptionReason: 'EvictionByEvictionAPI' }), removal: 'absent' },
      replace('evicted'),
    ],
    [
      'unregistered by itself: an ephemeral runner had taken a job',
      { pod: vanished, removal: 'absent' },
      end('errored', 'deleted_externally'),
    ],
    [
      'unregistered, perhaps by an attempt whose worker died: no evidence of a job',
      { pod: vanished, removal: 'absentAfterRetry' },
      replace('deleted_externally'),
    ],
    [
      '… busy according to its pod',
      { pod: vanished, removal: 'absentAfterRetry', busyAtEnd: true, hadJob: true },
      end('errored', 'deleted_externally'),
    ],
    [
      'a static runner, unregistered: no evidence of a job',
      { pod: vanished, removal: 'absent', ephemeral: false },
      replace('deleted_externally'),
    ],
    [
      'busy, onEviction replace',
      { pod: evicted, ...busy, onEviction: 'replace' },
      replace('evicted'),
    ],
    [
      'evicted after its job had completed',
      {
        pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }),
        hadJob: true,
        removal: 'absent',
      },
      end('succeeded'),
    ],
    [
      'stopped during its job, which ended because of that',
      {
        pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }),
        hadJob: true,
        jobInterrupted: true,
        removal: 'absent',
      },
      end('errored', 'evicted'),
    ],
    [
      '… a static runner',
      {
        pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }),
        ephemeral: false,
        hadJob: true,
        jobInterrupted: true,
      },
      end('errored', 'evicted'),
    ],
    [
      'stopped during its job: exit 0 is not a success',
      { pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }), ...busy },
      end('errored', 'evicted'),
    ],
    [
      'stopped, exit 0, and no job was reported',
      { pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }) },
      replace('evicted'),
    ],
  ])('%s', (...row) => check(row));

  const notStarted = { pod: { ...vanished, reason: 'Evicted' }, started: false };
  test.each<Row>([
    ['the 1st in a row', { ...notStarted, neverStartedInARow: 1 }, replace('evicted', 0)],
    ['the 2nd', { ...notStarted, neverStartedInARow: 2 }, replace('evicted', 5_000)],
    ['the 3rd', { ...notStarted, neverStartedInARow: 3 }, replace('evicted', 10_000)],
    ['the 4th', { ...notStarted, neverStartedInARow: 4 }, end('errored', 'evicted')],
    [
      'the 1st, independent of onEviction',
      { ...notStarted, neverStartedInARow: 1, onEviction: 'replace' },
      replace('evicted', 0),
    ],
  ])('before its container started: %s', (...row) => check(row));

  test.each<Row>([
    ['idle, and torn down', { pod: vanished }, replace('run_timeout')],
    ['it has ended in the meantime', { pod: exited(1) }, replace('run_timeout')],
    ['evicted while idle', { pod: evicted }, replace('run_timeout')],
    [
      'evicted during a job that started in the meantime',
      { pod: evicted, ...busy },
      end('errored', 'evicted'),
    ],
    ['drained in the meantime', { pod: vanished, cancel: drain }, end('succeeded')],
  ])('suspect because of its run time: %s', (...row) =>
    check(row, { ...idle, ephemeral: false, suspected: { cause: 'run_timeout', why: 'It was' } }),
  );

  test.each<Row>([
    [
      'it has completed its job in the meantime, according to its record',
      { pod: exited(0), hadJob: true },
      end('succeeded'),
    ],
    [
      '… and its registration was removed during it',
      { pod: exited(0), hadJob: true, removal: 'removed' },
      end('succeeded'),
    ],
  ])('suspect because it hangs: %s', (...row) =>
    check(row, { ...idle, ephemeral: true, suspected: { cause: 'agent_lost', why: 'It hangs' } }),
  );

  test.each([
    [1, 0],
    [2, 5_000],
    [3, 10_000],
    [4, 20_000],
    [5, 40_000],
    [6, 80_000],
    [7, 160_000],
    [8, 300_000],
    [9, 300_000],
    [1_000, 300_000],
  ])(
    'idle, the %dth short-lived runner in a row: replaced after %d ms',
    (shortLivedInARow, afterMs) =>
      expect(decideVerdict({ ...idle, pod: vanished, shortLivedInARow })).toMatchObject(
        replace('deleted_externally', afterMs),
      ),
  );
});

describe('it was ended on request', () => {
  test.each<Row>([
    [
      'cancel stop',
      { ...cancelled('stop'), pod: exited(143), stoppedByHoldfast: true },
      end('aborted', 'cancelled'),
    ],
    [
      'cancel force',
      { ...cancelled('force'), pod: vanished, stoppedByHoldfast: true },
      end('aborted', 'cancelled'),
    ],
    [
      'cancel drain, its job finished',
      { ...cancelled('drain'), pod: exited(0), hadJob: true },
      end('aborted', 'cancelled'),
    ],
    [
      'cancel drain, its job lost by a stop that was requested later',
      { ...cancelled('stop'), pod: exited(143, { terminating: true }), ...busy },
      end('aborted', 'cancelled'),
    ],
    [
      'its idle timeout, and evicted while idle',
      { ...cancelled('drain', 'idle_timeout'), pod: evicted },
      end('aborted', 'idle_timeout'),
    ],
    ['superseded', { ...cancelled('stop', 'superseded') }, end('aborted', 'superseded')],
    ['its job timeout', { ...cancelled('stop', 'run_timeout') }, end('aborted', 'run_timeout')],
    ['its idle timeout', { ...cancelled('drain', 'idle_timeout') }, end('aborted', 'idle_timeout')],
    ['before there was a pod', cancelled('stop'), end('aborted', 'cancelled')],
    [
      'a cancel takes precedence over a failed step',
      { ...cancelled('stop'), failure: { message: 'it did not come up' } },
      end('aborted', 'cancelled'),
    ],
  ])('%s', (...row) => {
    check(row);
    expect(decideVerdict({ ...idle, ...row[1] }).message).toContain('why');
  });

  test.each<Row>([
    [
      'cancel drain, evicted with its job',
      { ...cancelled('drain'), pod: evicted, ...busy },
      end('errored', 'evicted'),
    ],
    [
      'its idle timeout, evicted with a job that started late',
      { ...cancelled('drain', 'idle_timeout'), pod: evicted, ...busy },
      end('errored', 'evicted'),
    ],
    [
      '... and unregistered: its own record decides',
      {
        ...cancelled('drain', 'idle_timeout'),
        pod: exited(143, { exit: { code: 143, oomKilled: false, record: { job: 'interrupted' } } }),
      },
      end('errored', 'agent_lost'),
    ],
  ])('a drain lets a job finish: %s', (...row) => check(row));

  test.each<Row>([
    ['idle', { pod: live }, end('succeeded')],
    [
      'idle, its registration removed by a third party',
      { pod: live, removal: 'absent' },
      end('succeeded'),
    ],
    ['before there was a pod', {}, end('succeeded')],
    ['busy, ephemeral: its job finished', { pod: exited(0), hadJob: true }, end('succeeded')],
    [
      '… after a 422',
      { pod: exited(0), hadJob: true, busyAtEnd: true, removal: 'busy' },
      end('succeeded'),
    ],
    [
      'static, idle: deleted by a third party',
      { pod: exited(143, { terminating: true }), ephemeral: false, hadJob: true },
      end('succeeded'),
    ],
    ['crashed during its job', { pod: exited(3), ...busy, ephemeral: false }, end('failed')],
    ['lost while idle', { pod: vanished }, end('succeeded')],
    ['lost with its job', { pod: evicted, ...busy }, end('errored', 'evicted')],
    [
      'vanished with its job, static',
      { pod: vanished, ...busy, ephemeral: false },
      end('errored', 'deleted_externally'),
    ],
    [
      'stopped during its job, exit 0',
      { pod: exited(0, { disruptionReason: 'EvictionByEvictionAPI' }), ...busy },
      end('errored', 'evicted'),
    ],
    [
      'out of memory during its job',
      { pod: killedForMemory, ...busy },
      end('failed', 'oom_killed'),
    ],
    ['crashed', { pod: exited(3) }, end('failed')],
    ['version rejected', { pod: exited(7) }, end('errored', 'runner_deprecated')],
    [
      'its startup had failed before',
      { failure: { cause: 'image_pull', message: 'the image is not there' } },
      end('errored', 'image_pull'),
    ],
  ])('drained: %s', (...row) => check(row, { ...idle, cancel: drain }));
});

describe('a step failed', () => {
  test.each<RunnerCause>([
    'image_pull',
    'unschedulable',
    'pending_timeout',
    'never_registered',
    'credentials',
    'quota_exceeded',
    'pod_rejected',
    'ci_server_unreachable',
  ])('%s', (cause) => {
    expect(decideVerdict({ ...unasked, failure: { cause, message: 'what failed' } })).toEqual({
      kind: 'end',
      outcome: 'errored',
      cause,
      message: 'what failed',
    });
  });

  test('without a cause', () => {
    expect(decideVerdict({ ...unasked, failure: { message: 'what failed' } })).toEqual({
      kind: 'end',
      outcome: 'errored',
      message: 'what failed',
    });
  });
});

/** Reasons of the DisruptionTarget condition: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions */
describe('why a pod was lost', () => {
  test.each<[what: string, pod: PodView, cause: RunnerCause | undefined]>([
    ['Eviction API', exited(143, { disruptionReason: 'EvictionByEvictionAPI' }), 'evicted'],
    [
      'preempted by the scheduler',
      exited(143, { disruptionReason: 'PreemptionByScheduler' }),
      'preempted',
    ],
    [
      '… in older versions',
      exited(143, { disruptionReason: 'PreemptionByKubeScheduler' }),
      'preempted',
    ],
    ['taint', exited(143, { disruptionReason: 'DeletionByTaintManager' }), 'node_lost'],
    [
      'garbage-collected with its node',
      { ...vanished, disruptionReason: 'DeletionByPodGC' },
      'node_lost',
    ],
    [
      'kubelet: node pressure',
      exited(137, { disruptionReason: 'TerminationByKubelet', reason: 'Evicted' }),
      'evicted',
    ],
    [
      'kubelet: node shutdown',
      exited(143, { disruptionReason: 'TerminationByKubelet', reason: 'Terminated' }),
      'node_shutdown',
    ],
    [
      'kubelet: room for a critical pod',
      exited(137, { disruptionReason: 'TerminationByKubelet', reason: 'Preempting' }),
      'preempted',
    ],
    ['an unknown reason', exited(143, { disruptionReason: 'DeletionByStrangers' }), 'evicted'],
    ['status Evicted alone', { ...ended, reason: 'Evicted' }, 'evicted'],
    ['status NodeLost alone', { ...ended, reason: 'NodeLost' }, 'node_lost'],
    ['status Shutdown alone', { ...ended, reason: 'Shutdown' }, 'node_shutdown'],
    ['status NodeShutdown alone', { ...ended, reason: 'NodeShutdown' }, 'node_shutdown'],
    ['status Terminated alone', { ...ended, reason: 'Terminated' }, 'node_shutdown'],
    ['status Preempting alone', { ...ended, reason: 'Preempting' }, 'preempted'],
    [
      'deleted by a third party, with a final status',
      exited(143, { terminating: true }),
      'deleted_externally',
    ],
    ['deleted by a third party, without a final status', vanished, 'deleted_externally'],
    ['final without an exit code', ended, 'agent_lost'],
    ['exited by itself', exited(1), undefined],
    ['exited by itself, and deleted later', exited(0, { deleted: true }), undefined],
    ['alive', live, undefined],
  ])('%s', (_what, pod, cause) => {
    expect(lossCause(pod)).toBe(cause);
  });
});

test('a drained runner that ends by itself after its registration is gone was drained, with every exit code; one with a job is judged by its exit code', () => {
  const facts = { ...idle, cancel: drain, pod: exited(1) } as EndFacts;
  expect(decideVerdict({ ...facts, removedWhileRunning: true })).toMatchObject({
    kind: 'end',
    outcome: 'succeeded',
  });
  expect(decideVerdict({ ...facts, removedWhileRunning: true, busyAtEnd: true })).toMatchObject({
    outcome: 'failed',
  });
  expect(decideVerdict(facts)).toMatchObject({ outcome: 'failed' });
});

describe('a plain command', () => {
  const recorded = (
    code: number,
    reason?: 'cancelled' | 'evicted' | 'drained' | 'timeout',
    more: Partial<PodView> = {},
  ): PodView => ({
    ...ended,
    exit: { code, oomKilled: false, record: reason === undefined ? {} : { reason } },
    ...more,
  });
  const deleted = { terminating: true };
  const { removal: _none, ...facts } = {
    ...idle,
    kind: 'command' as const,
    hadJob: true,
    busyAtEnd: true,
  };

  test.each<Row>([
    ['exit 0', { pod: exited(0) }, end('succeeded')],
    ['exit 3', { pod: exited(3) }, end('failed')],
    ['exit 7, which has no special meaning for a command', { pod: exited(7) }, end('failed')],
    [
      'exit 0, and too large a SHARED_DIR',
      {
        pod: exited(0, {
          exit: {
            code: 0,
            oomKilled: false,
            record: {},
            uploadFailure: { by: 'step', why: 'too much' },
          },
        }),
      },
      end('failed'),
    ],
    [
      'exit 0, and an unavailable store',
      {
        pod: exited(0, {
          exit: {
            code: 0,
            oomKilled: false,
            record: {},
            uploadFailure: { by: 'store', why: 'away' },
          },
        }),
      },
      end('errored'),
    ],
    [
      'exit 0, and still being stored at its timeout',
      { pod: { ...exited(0), ended: false, uploadingUntil: '2026-01-01T00:00:00Z' } },
      end('errored'),
    ],
    [
      'a store that does not return the files of earlier steps: replaced',
      {
        pod: {
          ...neverStarted,
          problem: { kind: 'store', message: 'away', since: '2026-01-01T00:00:00Z' },
        },
        started: false,
        neverStartedInARow: 1,
      },
      replace('agent_lost'),
    ],
    ['its timeout', { pod: recorded(127, 'timeout') }, end('aborted', 'run_timeout')],
    [
      'stopped from inside its pod, exit 0',
      { pod: recorded(0, 'cancelled') },
      end('errored', 'agent_lost'),
    ],
    [
      '… before it was seen to be up',
      { pod: recorded(0, 'cancelled'), wasOnline: false },
      end('errored', 'agent_lost'),
    ],
    [
      'lost before it was seen to be up',
      { pod: vanished, busyAtEnd: false, hadJob: false },
      end('errored', 'deleted_externally'),
    ],
    [
      'deleted, exit 0, without a supervisor: unknown whether it was complete',
      { pod: exited(0, deleted) },
      end('errored', 'deleted_externally'),
    ],
    [
      'deleted, exit 0 because it was stopped',
      { pod: recorded(0, 'cancelled', deleted) },
      end('errored', 'deleted_externally'),
    ],
    [
      'deleted, exit 0 during its drain',
      { pod: recorded(0, undefined, deleted) },
      end('succeeded'),
    ],
    [
      'deleted, stopped after its drain',
      { pod: recorded(143, 'drained', deleted) },
      end('errored', 'deleted_externally'),
    ],
    [
      'deleted after it had ended by itself with exit 3',
      { pod: recorded(3, undefined, deleted) },
      end('failed'),
    ],
    [
      '… which is not replaced',
      { pod: recorded(3, undefined, deleted), onEviction: 'replace' },
      end('failed'),
    ],
    [
      '… also not in a drain',
      { pod: recorded(3, undefined, deleted), cancel: drain },
      end('failed'),
    ],
    [
      'killed by the node that was about to evict it',
      {
        pod: recorded(137, undefined, {
          ...deleted,
          disruptionReason: 'TerminationByKubelet',
          reason: 'Evicted',
        }),
      },
      end('errored', 'evicted'),
    ],
    [
      'evicted: replaced if onEviction permits it',
      { pod: evicted, onEviction: 'replace' },
      replace('evicted'),
    ],
    [
      'evicted at its checkpoint',
      { pod: recorded(143, 'evicted', deleted), checkpoints: true, onEviction: 'resume' },
      replace('deleted_externally'),
    ],
    [
      'evicted in its last attempt',
      {
        pod: recorded(143, 'evicted', deleted),
        checkpoints: true,
        onEviction: 'resume',
        lastAttempt: true,
      },
      end('errored', 'deleted_externally'),
    ],
    ...(['resume', 'replace'] as const).map((onEviction): Row => [
      `evicted (${onEviction}), and its attempts have used the time limit of a job`,
      {
        pod: recorded(143, 'evicted', deleted),
        checkpoints: true,
        onEviction,
        jobTimeUsed: true,
      },
      end('aborted', 'run_timeout'),
    ]),
    [
      'evicted, complete, and its attempts have used the time limit of a job',
      {
        pod: recorded(0, 'evicted', deleted),
        checkpoints: true,
        onEviction: 'resume',
        jobTimeUsed: true,
      },
      end('succeeded'),
    ],
    [
      'evicted, and too old to be resumed',
      {
        pod: recorded(143, 'evicted', deleted),
        checkpoints: true,
        onEviction: 'resume',
        lastAttempt: true,
        durationExceeded: true,
      },
      end('aborted', 'run_timeout'),
    ],
    [
      'evicted, too old, and complete',
      {
        pod: recorded(0, 'evicted', deleted),
        checkpoints: true,
        onEviction: 'resume',
        lastAttempt: true,
        durationExceeded: true,
      },
      end('succeeded'),
    ],
    [
      'lost before it started, in its last attempt: that has a separate limit',
      {
        pod: { ...neverStarted, deleted: true },
        started: false,
        onEviction: 'resume',
        lastAttempt: true,
        neverStartedInARow: 1,
      },
      replace('deleted_externally'),
    ],
    [
      'evicted, exit 0 from a command that checkpoints: complete',
      { pod: recorded(0, 'evicted', deleted), checkpoints: true, onEviction: 'resume' },
      end('succeeded'),
    ],
    [
      'cancelled at its checkpoint',
      {
        pod: recorded(143, 'cancelled', deleted),
        checkpoints: true,
        onEviction: 'resume',
        stoppedByHoldfast: true,
        ...cancelled('stop'),
      },
      end('aborted', 'cancelled'),
    ],
    [
      'lost in a drain',
      { pod: recorded(143, 'evicted', deleted), cancel: drain },
      end('errored', 'deleted_externally'),
    ],
    [
      'drained before it started',
      {
        pod: { ...neverStarted, deleted: true },
        cancel: drain,
        started: false,
        hadJob: false,
        busyAtEnd: false,
      },
      end('succeeded'),
    ],
  ])('%s', (...row) => check(row, facts));
});

describe('rules for every combination of facts', () => {
  const decided: { facts: EndFacts; decision: VerdictDecision }[] = [...everyCombination()].map(
    (facts) => ({ facts, decision: decideVerdict(facts) }),
  );
  const violations = (rule: (facts: EndFacts, decision: VerdictDecision) => boolean) =>
    decided.filter(({ facts, decision }) => !rule(facts, decision)).slice(0, 3);
  const succeeds = (decision: VerdictDecision) =>
    decision.kind === 'end' && decision.outcome === 'succeeded';

  test('all combinations are tested', () => {
    expect(decided).toHaveLength(2 ** 8 * 13 * 5 * 4 * 2 * 2);
  });

  test('an unknown final state is never succeeded: only exit 0 of an ephemeral runner, or a drain', () => {
    expect(
      violations(
        (f, decision) =>
          !succeeds(decision) ||
          f.cancel?.by === 'drain' ||
          (f.ephemeral && f.pod?.exit?.code === 0),
      ),
    ).toEqual([]);
  });

  test('a runner without a proof of a job is never succeeded: the CI server, the runner, or a registration that was removed by itself', () => {
    const proven = (f: EndFacts): boolean =>
      f.hadJob || f.removal === 'busy' || (f.wasRegistered && f.removal === 'absent');
    expect(
      violations((f, decision) => !succeeds(decision) || f.cancel?.by === 'drain' || proven(f)),
    ).toEqual([]);
    expect(
      violations(
        (f, decision) =>
          !succeeds(decision) || f.cancel?.by === 'drain' || f.pod?.exit?.record?.job !== 'none',
      ),
    ).toEqual([]);
  });

  test('a lost job is never succeeded', () => {
    expect(
      violations(
        (f, decision) =>
          !succeeds(decision) || f.removal !== 'busy' || (f.ephemeral && f.pod?.exit?.code === 0),
      ),
    ).toEqual([]);
    expect(
      violations(
        (f, decision) =>
          !succeeds(decision) ||
          !(f.busyAtEnd || f.jobInterrupted) ||
          f.stoppedByHoldfast ||
          f.pod === undefined ||
          lossCause(f.pod) === undefined,
      ),
    ).toEqual([]);
  });

  test('a cancelled, drained, OOM-killed or exited runner is never replaced', () => {
    expect(
      violations(
        (f, decision) =>
          decision.kind !== 'replace' ||
          (f.cancel === undefined &&
            f.failure === undefined &&
            f.pod?.exit?.oomKilled !== true &&
            f.pod !== undefined &&
            lossCause(f.pod) !== undefined &&
            !f.stoppedByHoldfast),
      ),
    ).toEqual([]);
  });

  test('every errored verdict has a cause', () => {
    expect(
      violations(
        (_f, decision) =>
          decision.kind !== 'end' || decision.outcome !== 'errored' || decision.cause !== undefined,
      ),
    ).toEqual([]);
  });

  test('a started runner with a job is replaced only if onEviction permits it', () => {
    expect(
      violations(
        (f, decision) =>
          decision.kind !== 'replace' ||
          !f.started ||
          !(f.busyAtEnd || f.jobInterrupted) ||
          f.onEviction === 'replace',
      ),
    ).toEqual([]);
  });
});

function* everyCombination(): Generator<EndFacts> {
  const pods = [
    undefined,
    live,
    ended,
    vanished,
    evicted,
    exited(0),
    exited(0, { terminating: true }),
    exited(1),
    exited(7),
    exited(143, { terminating: true }),
    recordsJob('none'),
    killedForMemory,
    { ...ended, reason: 'DeadlineExceeded' },
  ];
  const flags = [
    'stoppedByHoldfast',
    'ephemeral',
    'started',
    'wasOnline',
    'wasRegistered',
    'hadJob',
    'busyAtEnd',
    'jobInterrupted',
  ] as const;
  for (let bits = 0; bits < 2 ** flags.length; bits++) {
    const booleans = Object.fromEntries(
      flags.map((flag, index) => [flag, (bits & (1 << index)) !== 0]),
    ) as Record<(typeof flags)[number], boolean>;
    for (const pod of pods) {
      for (const removal of [undefined, 'removed', 'absent', 'absentAfterRetry', 'busy'] as const) {
        for (const cancel of [
          undefined,
          drain,
          cancelled('drain').cancel,
          cancelled('stop').cancel,
        ]) {
          for (const onEviction of ['fail', 'replace'] as const) {
            for (const neverStartedInARow of [1, 4]) {
              yield {
                ...booleans,
                jobSucceeded: false,
                kind: 'github',
                checkpoints: false,
                onEviction,
                neverStartedInARow,
                shortLivedInARow: 1,
                ...omitUndefined({ pod, removal, cancel }),
              };
            }
          }
        }
      }
    }
  }
}
