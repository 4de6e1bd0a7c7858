import { describe, expect, test } from '@jest/globals';
import { podStateChange } from '../../../activities/watcher/podStateNotifier.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const seen = (fields: Partial<PodView>): PodView => ({
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: '',
  ended: false,
  deleted: false,
  terminating: false,
  ...fields,
});
const idle = seen({ online: true, busy: false });
const busy = seen({ online: true, busy: true });
const unknown = (assumedBusyFrom: string) => seen({ online: true, assumedBusyFrom });
const reusableIdle = seen({ online: true, busy: false, reusable: true });

describe('a state is announced', () => {
  test.each<[string, PodView, PodView | undefined, 'busy' | 'idle' | undefined]>([
    ['busy, after idle', busy, idle, 'busy'],
    ['busy, seen for the first time', busy, undefined, 'busy'],
    ['busy, as before', busy, busy, undefined],
    ['idle, after busy', idle, busy, 'idle'],
    ['idle, as before', idle, idle, undefined],
    [
      'idle, when it comes online, which its wait reports',
      idle,
      seen({ online: false, busy: false }),
      undefined,
    ],
    ['idle, seen for the first time', idle, undefined, undefined],
    ['idle, seen for the first time, and it may have had a job', reusableIdle, undefined, 'idle'],
    [
      'still unknown',
      unknown('2026-03-01T12:00:01Z'),
      seen({ online: false, busy: false }),
      undefined,
    ],
    [
      'busy by assumption',
      unknown('2026-03-01T11:59:59Z'),
      seen({ online: false, busy: false }),
      'busy',
    ],
    ['ended', seen({ online: true, busy: true, ended: true }), idle, undefined],
    ['it reports no state', seen({}), undefined, undefined],
  ])('%s', (_what, pod, previous, news) => {
    expect(podStateChange(pod, previous, NOW)).toBe(news);
  });

  test('when only time has passed', () => {
    const pod = unknown('2026-03-01T12:00:00Z');
    expect([podStateChange(pod, pod, NOW - 1), podStateChange(pod, pod, NOW)]).toEqual([
      undefined,
      'busy',
    ]);
  });
});
