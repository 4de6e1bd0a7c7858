import { describe, expect, test } from '@jest/globals';
import type { SweepOutcome } from '../../../core/contract/index.ts';
import {
  incompleteMessage,
  sweepOutcome,
  sweepSummary,
} from '../../../core/domain/sweepSummary.ts';
import { sweepReport } from '../../support/sweepReports.ts';

describe('the outcome of a sweep', () => {
  test.each<[outcome: SweepOutcome, report: Parameters<typeof sweepReport>[0]]>([
    ['clean', {}],
    ['clean', { dryRun: true, skipped: { too_young: 3 } }],
    ['marked', { counts: { orphaned_pod: { found: 1, marked: 1 } } }],
    // A stuck runner that was signaled counts as marked, not as repaired.
    ['marked', { counts: { stuck_runner: { found: 1 } } }],
    ['repaired', { counts: { orphaned_pod: { found: 2, marked: 1, repaired: 1 } } }],
    ['found', { dryRun: true, counts: { expired_pod: { found: 1 } } }],
    ['aborted', { aborted: 'too many', counts: { orphaned_pod: { found: 10 } } }],
    ['aborted', { aborted: 'too many', dryRun: true, counts: { orphaned_pod: { found: 10 } } }],
    [
      'failed',
      {
        counts: {
          orphaned_pod: { found: 2, repaired: 1 },
          orphaned_resource: { found: 1, failed: 1 },
        },
      },
    ],
  ])('%s: %j', (outcome, report) => {
    expect(sweepOutcome(sweepReport(report))).toBe(outcome);
  });
});

describe('in one line', () => {
  test.each<[text: string, report: Parameters<typeof sweepReport>[0]]>([
    ['nothing to repair; checked 120 runners, 119 pods', {}],
    ['nothing to repair (dry run); checked nothing', { dryRun: true, examined: {} }],
    [
      '2 orphaned_pod (1 marked, 1 repaired), 1 stuck_runner; 14 skipped; checked 120 runners, 119 pods',
      {
        counts: {
          orphaned_pod: { found: 2, marked: 1, repaired: 1 },
          stuck_runner: { found: 1 },
        },
        skipped: { too_young: 12, on_hold: 2 },
      },
    ],
    [
      '1 orphaned_resource (1 failed); checked 120 runners, 119 pods',
      { counts: { orphaned_resource: { found: 1, failed: 1 } } },
    ],
    [
      'aborted: 10 of 12 pods; 10 orphaned_pod; checked 120 runners, 119 pods',
      { aborted: '10 of 12 pods', counts: { orphaned_pod: { found: 10 } } },
    ],
  ])('%s', (text, report) => {
    expect(sweepSummary(sweepReport(report))).toBe(text);
  });

  test('the lists that failed', () => {
    expect(
      incompleteMessage([
        { list: 'pods', reason: 'forbidden' },
        { list: 'registrations of orgs/acme', reason: '502' },
      ]),
    ).toBe(
      'nothing was changed, because a list is incomplete: pods (forbidden); registrations of orgs/acme (502)',
    );
  });
});
