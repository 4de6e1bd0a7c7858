import { describe, expect, test } from '@jest/globals';
import {
  nextCheckMs,
  decideStartup,
  type StartupDecision,
  type StartupDeadlines,
} from '../../../workflows/runner/startupDecision.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const MINUTE = 60_000;
const NOW = Date.parse('2026-01-01T01:00:00Z');
const ago = (ms: number) => new Date(NOW - ms).toISOString();
const production: StartupDeadlines = {
  podUnscheduledMs: 5 * MINUTE,
  podPendingMs: 10 * MINUTE,
  registrationMs: 10 * MINUTE,
};
const unscheduled: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: false,
  createdAt: ago(0),
  ended: false,
  deleted: false,
  terminating: false,
};
const scheduled: PodView = { ...unscheduled, scheduled: true };
const started = (sinceMs: number): PodView => ({ ...scheduled, startedAt: ago(sinceMs) });
const problem = (kind: 'image_pull' | 'config', more: { persistent?: true } = {}) => ({
  problem: { kind, message: 'back-off pulling image', since: ago(0), ...more },
});
const PERSISTENT = { persistent: true } as const;
const decide = (pod: PodView, ageMs: number, deadlines = production): StartupDecision =>
  decideStartup(pod, ageMs, NOW - Date.parse(pod.startedAt ?? ago(0)), deadlines);

type Row = [
  what: string,
  pod: PodView,
  ageMs: number,
  expected: { kind: StartupDecision['kind']; [field: string]: unknown },
];

test.each<Row>([
  ['just created', unscheduled, 0, { kind: 'wait', forMs: 5 * MINUTE, why: 'pod to be scheduled' }],
  [
    'unscheduled for slightly less than allowed',
    unscheduled,
    5 * MINUTE - 1,
    { kind: 'wait', forMs: 1 },
  ],
  [
    'unscheduled for too long',
    unscheduled,
    5 * MINUTE,
    {
      kind: 'failed',
      cause: 'unschedulable',
      message: expect.stringContaining('5m0s: the scheduler gave no reason'),
    },
  ],
  [
    '… with the scheduler’s message',
    { ...unscheduled, unschedulable: '0/3 nodes' },
    5 * MINUTE,
    { kind: 'failed', cause: 'unschedulable', message: expect.stringContaining('0/3 nodes') },
  ],
  [
    'scheduled',
    scheduled,
    6 * MINUTE,
    { kind: 'wait', forMs: 4 * MINUTE, why: 'container to start' },
  ],

  [
    'pending for too long',
    scheduled,
    10 * MINUTE,
    { kind: 'failed', cause: 'pending_timeout', message: expect.stringContaining('10m0s') },
  ],
  [
    'pending for too long with a fresh image problem',
    { ...scheduled, ...problem('image_pull') },
    10 * MINUTE,
    { kind: 'failed', cause: 'image_pull' },
  ],
  [
    'an image problem that may be transient',
    { ...scheduled, ...problem('image_pull') },
    MINUTE,
    { kind: 'wait', forMs: 9 * MINUTE },
  ],
  [
    'a persistent image problem',
    { ...scheduled, ...problem('image_pull', PERSISTENT) },
    MINUTE,
    {
      kind: 'failed',
      cause: 'image_pull',
      message: expect.stringContaining('back-off pulling image'),
    },
  ],
  [
    'a persistent configuration problem',
    { ...scheduled, ...problem('config', PERSISTENT) },
    MINUTE,
    { kind: 'failed' },
  ],
  [
    'running, and does not report whether it is online: the CI server is checked',
    started(0),
    MINUTE,
    { kind: 'running' },
  ],
  ['… at every age of the pod', started(0), 60 * MINUTE, { kind: 'running' }],
  [
    'running, not online yet',
    { ...started(4 * MINUTE), online: false },
    20 * MINUTE,
    { kind: 'wait', forMs: 6 * MINUTE, why: 'runner to come online' },
  ],
  [
    'not online in time, counted from the container’s start',
    { ...started(10 * MINUTE), online: false },
    10 * MINUTE,
    { kind: 'failed', cause: 'never_registered' },
  ],
  ['online', { ...started(0), online: true }, MINUTE, { kind: 'online' }],
  [
    'online, later than allowed: accepted',
    { ...started(60 * MINUTE), online: true },
    60 * MINUTE,
    { kind: 'online' },
  ],
  ['ended', { ...started(0), ended: true }, 0, { kind: 'ended' }],
  [
    'ended before it started, deadlines exceeded',
    { ...unscheduled, ended: true },
    60 * MINUTE,
    { kind: 'ended' },
  ],
  [
    'ended: takes precedence over its last report',
    { ...started(0), online: true, ended: true },
    0,
    { kind: 'ended' },
  ],
])('%s', (_what, pod, ageMs, expected) => {
  expect(decide(pod, ageMs)).toMatchObject(expected);
});

test('a registration deadline shorter than the pod’s own is kept, even if the start of the container is not reported', () => {
  const pod = { ...unscheduled, online: false };
  const deadlines = { ...production, registrationMs: 5_000 };
  expect(decide(unscheduled, 0, deadlines)).toMatchObject({ kind: 'wait', forMs: 5 * MINUTE });
  expect(decide(pod, 0, deadlines)).toMatchObject({ kind: 'wait', forMs: 5_000 });
  expect(
    decide({ ...pod, scheduled: true, startedAt: ago(4_000) }, 5_000, deadlines),
  ).toMatchObject({ kind: 'wait', forMs: 1_000 });
});

describe('every wait has an end', () => {
  test('and a positive time, for all deadlines', () => {
    for (const podUnscheduledMs of [1, 5_000, 50_000]) {
      for (const podPendingMs of [1, 5_000, 50_000]) {
        for (const age of [0, 1, 4_999, 5_000, 49_999, 50_000]) {
          for (const pod of [
            unscheduled,
            scheduled,
            { ...started(age), online: false },
            { ...scheduled, ...problem('image_pull', age >= 30_000 ? PERSISTENT : {}) },
          ]) {
            const step = decide(pod, age, {
              podUnscheduledMs,
              podPendingMs,
              registrationMs: 5_000,
            });
            const waitsMs = step.kind === 'wait' ? step.forMs : undefined;
            expect(waitsMs ?? Infinity).toBeGreaterThan(0);
            expect({ pod, age, waits: age >= 50_000 && waitsMs !== undefined }).toMatchObject({
              waits: false,
            });
          }
        }
      }
    }
  });
});

test('a runner that may be about to register is checked less and less often, and once when its deadline is over', () => {
  const looks = (registrationMs: number): number[] => {
    const at = [0];
    while ((at.at(-1) ?? 0) < registrationMs)
      at.push((at.at(-1) ?? 0) + nextCheckMs(at.at(-1) ?? 0, registrationMs, 10_000));
    return at;
  };
  const [minutes, day, month] = [600_000, 86_400_000, 30 * 86_400_000].map(looks);
  expect(minutes?.slice(0, 11)).toEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((count) => count * 10_000),
  );
  expect([minutes?.at(-1), day?.at(-1), month?.at(-1)]).toEqual([
    600_000,
    86_400_000,
    30 * 86_400_000,
  ]);
  // Each check is about eleven history events, of which a workflow may have 51,200.
  expect([minutes?.length, day?.length, month?.length].every((count = 0) => count < 150)).toBe(
    true,
  );
});
