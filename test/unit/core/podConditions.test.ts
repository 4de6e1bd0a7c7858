import { describe, expect, test } from '@jest/globals';
import {
  IMAGE_PROBLEM_GRACE_MS,
  POD_CONDITIONS,
  TERMINATION_OVERDUE_MS,
  conditionDueAtMs,
  conditionMet,
  isCompletedEphemeral,
  parseWaitActivityId,
  waitActivityId,
  type PodCondition,
} from '../../../core/domain/podConditions.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const AT = Date.parse('2026-01-01T00:00:00Z');
const iso = (ms: number) => new Date(ms).toISOString();
const pending: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: false,
  createdAt: iso(AT),
  ended: false,
  deleted: false,
  terminating: false,
};
const running: PodView = { ...pending, scheduled: true, startedAt: iso(AT) };
const problem = (kind: 'image_pull' | 'invalid_image' | 'config') => ({
  ...pending,
  problem: { kind, message: 'no such image', since: iso(AT) },
});
const terminating = {
  ...running,
  online: false,
  terminating: true,
  terminationDeadline: iso(AT + 30_000),
};

test('the grace periods in production', () => {
  expect({ IMAGE_PROBLEM_GRACE_MS, TERMINATION_OVERDUE_MS }).toEqual({
    IMAGE_PROBLEM_GRACE_MS: 30_000,
    TERMINATION_OVERDUE_MS: 60_000,
  });
});

type Dues = Record<PodCondition, number | undefined>;
const never: Dues = { online: undefined, ended: undefined, deleted: undefined };

/** The time when each condition holds; 0 if it holds already. */
test.each<[what: string, pod: PodView, dues: Dues]>([
  ['pending', pending, never],
  ['running, and does not report whether it is online', running, { ...never, online: 0 }],
  ['running, and reports that it is not online', { ...running, online: false }, never],
  ['running, and reports that it is online', { ...running, online: true }, { ...never, online: 0 }],
  ['an image problem', problem('image_pull'), { ...never, online: AT + 30_000 }],
  ['a configuration problem', problem('config'), { ...never, online: AT + 30_000 }],
  ['an invalid image name', problem('invalid_image'), { ...never, online: 0 }],
  ['container ended', { ...running, ended: true }, { online: 0, ended: 0, deleted: undefined }],
  [
    'ended and gone',
    { ...running, ended: true, deleted: true },
    { online: 0, ended: 0, deleted: 0 },
  ],
  [
    'gone before it started',
    { ...pending, ended: true, deleted: true },
    { online: 0, ended: 0, deleted: 0 },
  ],
  [
    'container ended, being stored',
    { ...running, online: true, uploadingUntil: iso(AT + 10_000) },
    { online: 0, ended: AT + 10_000, deleted: undefined },
  ],
  [
    '… and terminating',
    { ...terminating, online: true, uploadingUntil: iso(AT + 100_000) },
    { online: 0, ended: AT + 90_000, deleted: undefined },
  ],
  [
    'terminating: overdue a minute after its grace period',
    terminating,
    { online: AT + 90_000, ended: AT + 90_000, deleted: undefined },
  ],
])('%s', (_what, pod, dues) => {
  expect(
    Object.fromEntries(
      POD_CONDITIONS.map((condition) => [condition, conditionDueAtMs(condition, pod)]),
    ),
  ).toEqual(dues);
  for (const condition of POD_CONDITIONS) {
    const due = dues[condition];
    const latest = due ?? Number.MAX_SAFE_INTEGER;
    expect(conditionMet(condition, pod, latest)).toBe(due !== undefined);
    expect(conditionMet(condition, pod, latest - 1)).toBe(false);
  }
});

describe('the activity id of a wait', () => {
  test.each(POD_CONDITIONS)('%s is read back', (condition) => {
    expect(waitActivityId(condition, 'runner-1')).toBe(`${condition}/runner-1`);
    expect(parseWaitActivityId(waitActivityId(condition, 'runner-1'))).toEqual({
      condition,
      podName: 'runner-1',
    });
  });

  test.each(['', '1', 'online', 'online/', 'online/a/b', 'started/a', '/a'])(
    '%p is the id of another activity',
    (id) => {
      expect(parseWaitActivityId(id)).toBeUndefined();
    },
  );
});

describe('a pod that can be deleted once its end is known', () => {
  const exit = { code: 0, oomKilled: false, record: { job: 'completed' as const } };
  const done: PodView = { ...running, ended: true, exit };

  test('ran its one job and ended by itself', () => expect(isCompletedEphemeral(done)).toBe(true));

  test.each<[what: string, pod: PodView]>([
    ['runs', { ...running, online: true, busy: true }],
    ['failed', { ...done, exit: { ...exit, code: 1 } }],
    ['has no record of a job', { ...done, exit: { code: 0, oomKilled: false } }],
    ['had no job', { ...done, exit: { ...exit, record: { job: 'none' } } }],
    [
      'was interrupted during its job',
      { ...done, exit: { ...exit, record: { job: 'interrupted' } } },
    ],
    [
      'was stopped on request',
      { ...done, exit: { ...exit, record: { job: 'completed', reason: 'evicted' } } },
    ],
    ['is being evicted', { ...done, disruptionReason: 'EvictionByEvictionAPI' }],
    ['is being deleted', { ...done, terminating: true }],
    ['is gone', { ...done, deleted: true }],
    ['takes more than one job', { ...done, reusable: true }],
  ])('not one that %s', (_what, pod) => expect(isCompletedEphemeral(pod)).toBe(false));
});
