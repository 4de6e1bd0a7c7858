import { describe, expect, test } from '@jest/globals';
import type { ListedDelivery } from '../../../activities/ciServers/github/responses.ts';
import { planRedelivery } from '../../../activities/ciServers/github/redelivery.ts';

const NOW = Date.parse('2026-03-10T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const failed = (id: number, agoMs: number, more: Partial<ListedDelivery> = {}): ListedDelivery => ({
  id,
  guid: 'g',
  delivered_at: NOW - agoMs,
  status_code: 503,
  event: 'workflow_job',
  ...more,
});

describe('deliveries to redeliver', () => {
  test.each<[what: string, deliveries: ListedDelivery[], redeliver: number[]]>([
    ['nothing failed', [], []],
    ['failed just now', [failed(1, 0)], [1]],
    ['no answer', [failed(1, MINUTE, { status_code: 0 })], [1]],
    ['a wrong secret, which may be correct now', [failed(1, MINUTE, { status_code: 401 })], [1]],
    ['a proxy without a route', [failed(1, MINUTE, { status_code: 404 })], [1]],
    ['not JSON', [failed(1, MINUTE, { status_code: 400 })], []],
    ['too large', [failed(1, MINUTE, { status_code: 413 })], []],
    ['not an unsupported content type', [failed(1, MINUTE, { status_code: 415 })], []],
    ['too old', [failed(1, MINUTE, { status_code: 422 })], []],
    ['another event', [failed(1, MINUTE, { event: 'push' })], []],
    ['not one past its retention', [failed(1, 72 * HOUR)], []],
    ['kept still', [failed(1, 72 * HOUR - 1)], [1]],
    [
      'not one that succeeded later',
      [failed(2, MINUTE, { status_code: 202 }), failed(1, HOUR)],
      [],
    ],
    ['arrived before', [failed(1, HOUR, { status_code: 202 }), failed(2, MINUTE)], []],
    ['not one that failed again a moment ago', [failed(2, MINUTE - 1), failed(1, HOUR)], []],
    ['failed again a while ago: the last delivery', [failed(1, HOUR), failed(2, MINUTE)], [2]],
    [
      'not one that failed three times just now',
      [failed(3, 9 * MINUTE), failed(2, 2 * HOUR), failed(1, 3 * HOUR)],
      [],
    ],
    [
      'failed three times, ten minutes ago',
      [failed(3, 10 * MINUTE), failed(2, 2 * HOUR), failed(1, 3 * HOUR)],
      [3],
    ],
    [
      'failed six times, a day ago',
      [1, 2, 3, 4, 5, 6].map((id) => failed(id, 25 * HOUR - id)),
      [6],
    ],
    [
      'not one that failed seven times',
      [1, 2, 3, 4, 5, 6, 7].map((id) => failed(id, 48 * HOUR - id)),
      [],
    ],
    ['not one that was requested before', [failed(70, MINUTE)], []],
    ['a requested redelivery that failed, too', [failed(70, HOUR), failed(80, 30 * MINUTE)], [80]],
    [
      'several events, the oldest first',
      [
        failed(3, MINUTE, { guid: 'c' }),
        failed(2, HOUR, { guid: 'b' }),
        failed(1, HOUR, { guid: 'a' }),
      ],
      [1, 2, 3],
    ],
  ])('%s', (_what, deliveries, redeliver) => {
    for (const listed of [deliveries, deliveries.toReversed()])
      expect(planRedelivery(listed, new Set([70]), NOW, 100)).toEqual({ redeliver, postponed: 0 });
  });

  test('a limited number at once', () => {
    const many = Array.from({ length: 10 }, (_, index) =>
      failed(index + 10, HOUR - index, { guid: `g${index}` }),
    );
    expect(planRedelivery(many, new Set(), NOW, 3)).toEqual({
      redeliver: [10, 11, 12],
      postponed: 7,
    });
  });
});
