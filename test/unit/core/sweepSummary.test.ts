import { describe, expect, test } from '@jest/globals';
import type { SweepOutcome } from '../../../core/contract/index.ts';
import {
  incompleteMessage,
  sweepOutcome,
  sweepSummary,
} from '../../../core/domain/sweepSummary.ts';
import { sweepReport } from '../../support/sweepReports.ts';

describe('what came of a sweep', () => {
  test.each<[outcome: SweepOutcome, report: Parameters<typeof sweepReport>[0]]>([
    ['clean', {}],
    ['clean', { dryRun: true, skipped: { young: 3 } }],
    ['marked', { counts: { 'orphaned pod': { found: 1, marked: 1 } } }],
    // A zombie that was signalled waits: it is marked, not repaired.
    ['marked', { counts: { 'zombie runner': { found: 1 } } }],
    ['repaired', { counts: { 'orphaned pod': { found: 2, marked: 1, repaired: 1 } } }],
    ['found', { dryRun: true, counts: { 'aged pod': { found: 1 } } }],
    ['stopped', { stopped: 'too many', counts: { 'orphaned pod': { found: 10 } } }],
    ['stopped', { stopped: 'too many', dryRun: true, counts: { 'orphaned pod': { found: 10 } } }],
    [
      'failed',
      {
        counts: {
          'orphaned pod': { found: 2, repaired: 1 },
          'orphaned resource': { found: 1, failed: 1 },
        },
      },
    ],
  ])('%s: %j', (outcome, report) => {
    expect(sweepOutcome(sweepReport(report))).toBe(outcome);
  });
});

describe('in one line', () => {
  test.each<[text: string, report: Parameters<typeof sweepReport>[0]]>([
    ['nothing to repair; looked at 120 lives, 119 pods', {}],
    ['nothing to repair (dry run); looked at nothing', { dryRun: true, lookedAt: {} }],
    [
      '2 orphaned pods (1 marked, 1 repaired), 1 zombie runner; 14 left alone; looked at 120 lives, 119 pods',
      {
        counts: {
          'orphaned pod': { found: 2, marked: 1, repaired: 1 },
          'zombie runner': { found: 1 },
        },
        skipped: { young: 12, held: 2 },
      },
    ],
    [
      '1 orphaned resource (1 failed); looked at 120 lives, 119 pods',
      { counts: { 'orphaned resource': { found: 1, failed: 1 } } },
    ],
    [
      'stopped: 10 of 12 pods; 10 orphaned pods; looked at 120 lives, 119 pods',
      { stopped: '10 of 12 pods', counts: { 'orphaned pod': { found: 10 } } },
    ],
  ])('%s', (text, report) => {
    expect(sweepSummary(sweepReport(report))).toBe(text);
  });

  test('which lists could not be had', () => {
    expect(
      incompleteMessage([
        { list: 'pods', why: 'forbidden' },
        { list: 'registrations of orgs/acme', why: '502' },
      ]),
    ).toBe(
      'nothing was touched, because a list could not be had: pods (forbidden); registrations of orgs/acme (502)',
    );
  });
});
