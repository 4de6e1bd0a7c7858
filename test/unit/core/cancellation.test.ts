import { describe, expect, test } from '@jest/globals';
import {
  parseCancelRequest,
  parseDrainRequest,
  upgradeCancellation,
  type Cancellation,
} from '../../../core/domain/cancellation.ts';
import type { CancelMode } from '../../../core/contract/index.ts';

const MODES: readonly CancelMode[] = ['drain', 'stop', 'force'];
const asked = (mode: CancelMode, reason: string = mode): Cancellation => ({
  mode,
  reason,
  by: 'cancelled',
});

describe('a stronger cancellation upgrades, a weaker or equal one changes nothing', () => {
  test.each(
    MODES.flatMap((current, strength) =>
      MODES.map((wanted, rank) => [current, wanted, rank > strength] as const),
    ),
  )('%s, then %s: upgraded %s', (current, wanted, upgraded) => {
    const first = asked(current, 'first');
    const second = asked(wanted, 'second');
    expect(upgradeCancellation(first, second)).toBe(upgraded ? second : first);
  });

  test.each(MODES)('the first one counts: %s', (mode) => {
    expect(upgradeCancellation(undefined, asked(mode))).toEqual(asked(mode));
  });

  test('in any order the strongest mode applies, with its first reason', () => {
    for (const a of MODES) {
      for (const b of MODES) {
        for (const c of MODES) {
          const result = [asked(a, '1'), asked(b, '2'), asked(c, '3')].reduce<
            Cancellation | undefined
          >(upgradeCancellation, undefined);
          const strongest = [a, b, c].toSorted((x, y) => MODES.indexOf(y) - MODES.indexOf(x))[0];
          expect(result).toEqual(
            asked(strongest as CancelMode, String([a, b, c].indexOf(strongest as CancelMode) + 1)),
          );
        }
      }
    }
  });
});

describe('the body of the cancel signal', () => {
  test.each<[what: string, body: unknown, expected: Omit<Cancellation, 'by'>]>([
    ['nothing', undefined, { mode: 'stop', reason: '' }],
    ['null, as the CLI sends it', null, { mode: 'stop', reason: '' }],
    ['a reason', 'too slow', { mode: 'stop', reason: 'too slow' }],
    ['a mode', { mode: 'drain' }, { mode: 'drain', reason: '' }],
    ['a mode and a reason', { mode: 'force', reason: 'now' }, { mode: 'force', reason: 'now' }],
    ['a reason without a mode', { reason: 'x' }, { mode: 'stop', reason: 'x' }],
    ['an explicit null as mode', { mode: null, reason: 'x' }, { mode: 'stop', reason: 'x' }],
    [
      'an invalid mode',
      { mode: 'gently' },
      { mode: 'drain', reason: 'unknown cancel mode "gently", so it drains' },
    ],
    [
      'a mode that is not a string, with a reason',
      { mode: 7, reason: 'x' },
      { mode: 'drain', reason: 'unknown cancel mode 7, so it drains: x' },
    ],
    ['a reason that is not a string', { mode: 'drain', reason: 5 }, { mode: 'drain', reason: '' }],
    ['a number', 7, { mode: 'stop', reason: '' }],
    ['control characters', 'a\u0000b\r\nc', { mode: 'stop', reason: 'ab c' }],
  ])('%s', (_what, body, expected) => {
    expect(parseCancelRequest(body as never)).toEqual({ ...expected, by: 'cancelled' });
  });

  test.each<[what: string, body: unknown, by: Cancellation['by']]>([
    ['a planned drain, like the update', { mode: 'drain', planned: true }, 'drain'],
    ['a stop cannot be planned', { mode: 'stop', planned: true }, 'cancelled'],
    ['planned without a mode', { planned: true }, 'cancelled'],
    ['planned with an invalid value', { mode: 'drain', planned: 'yes' }, 'cancelled'],
    ['a timeout of the job of the step', { stopReason: 'timeout' }, 'run_timeout'],
    ['a newer version', { mode: 'stop', stopReason: 'superseded' }, 'superseded'],
    ['an invalid stop reason', { stopReason: 'drain' }, 'cancelled'],
  ])('%s', (_what, body, by) => {
    expect(parseCancelRequest(body as never)).toMatchObject({ by });
  });

  test('a reason is limited, because users see it', () => {
    expect(parseCancelRequest('x'.repeat(10_000)).reason).toHaveLength(500);
  });
});

test.each<[what: string, body: unknown, reason: string]>([
  ['nothing', undefined, ''],
  ['null, as the CLI sends it', null, ''],
  ['a reason', { reason: ' old\nimage ' }, 'old image'],
  ['a reason that is not a string', { reason: 5 }, ''],
])('the body of the update drain: %s', (_what, body, reason) => {
  expect(parseDrainRequest(body as never)).toEqual({ mode: 'drain', by: 'drain', reason });
});
