import { describe, expect, test } from '@jest/globals';
import {
  decideByEvidence,
  decideRerun,
  rerunCheckDelayMs,
  type LossFacts,
  type RerunCandidate,
} from '../../../core/domain/rerun.ts';

const STOPPED_AT = Date.parse('2026-03-01T12:00:00.500Z');
const loss: LossFacts = {
  runnerName: 'linux-0123456789',
  stoppedAt: STOPPED_AT,
  recorded: true,
  perRun: 1,
};
const lost: RerunCandidate = {
  runId: '5',
  attempt: 1,
  latestAttempt: 1,
  runEnded: true,
  runnerName: 'linux-0123456789',
  conclusion: 'failure',
  completedAt: STOPPED_AT + 20_000,
};
const { conclusion: _conclusion, completedAt: _completedAt, ...running } = lost;
const { runnerName: _runnerName, ...without } = lost;
const { stoppedAt: _stoppedAt, ...rest } = loss;
const unheard = { ...rest, recorded: false };

type Row = [what: string, job: RerunCandidate, loss: LossFacts, expected: object];
const skip = (reason: string) => ({ kind: 'skip', reason });
const ROWS: Row[] = [
  ['failed after its runner was stopped', lost, loss, { kind: 'rerun' }],
  [
    'runner killed without a record: needs evidence, independent of the time of its end',
    { ...lost, completedAt: 1 },
    unheard,
    { kind: 'prove' },
  ],
  [
    'failed after the stop, and the supervisor has no record of it',
    lost,
    { ...loss, recorded: false },
    { kind: 'prove' },
  ],
  [
    'ended in the second in which its runner was stopped, because times are whole seconds',
    { ...lost, completedAt: Date.parse('2026-03-01T12:00:00Z') },
    loss,
    { kind: 'rerun' },
  ],
  [
    'ended before, by a clock that may be slow, so the record may be about another job',
    { ...lost, completedAt: Date.parse('2026-03-01T11:59:59Z') },
    loss,
    { kind: 'prove' },
  ],
  ['not ended', { ...running, runEnded: false }, loss, { kind: 'wait', for: 'conclusion' }],
  [
    'ended, but other jobs of its workflow run are running',
    { ...lost, runEnded: false },
    loss,
    { kind: 'wait', for: 'run' },
  ],
  ['succeeded despite the loss', { ...lost, conclusion: 'success' }, loss, skip('succeeded')],
  ['timed out', { ...lost, conclusion: 'timed_out' }, loss, skip('other_conclusion')],
  ['skipped', { ...lost, conclusion: 'skipped' }, loss, skip('other_conclusion')],
  [
    'cancelled: needs evidence of the cause',
    { ...lost, conclusion: 'cancelled' },
    loss,
    { kind: 'prove' },
  ],
  [
    'ended by GitHub as unreachable, long before its pod was stopped',
    { ...lost, completedAt: STOPPED_AT - 20 * 60_000 },
    { ...loss, recorded: false },
    { kind: 'prove' },
  ],
  [
    'cancelled before',
    { ...lost, conclusion: 'cancelled', completedAt: 1 },
    loss,
    { kind: 'prove' },
  ],
  ['rerun by a user', { ...lost, latestAttempt: 2, rerunAttempt: 2 }, loss, skip('already_rerun')],
  [
    'another job of its run was rerun, and is running',
    { ...lost, latestAttempt: 2, runEnded: false },
    loss,
    { kind: 'wait', for: 'run' },
  ],
  [
    'another job of its run was rerun, and has ended',
    { ...lost, latestAttempt: 2 },
    loss,
    { kind: 'rerun' },
  ],
  ['now on another runner', { ...running, runnerName: 'other' }, loss, skip('other_runner')],
  ['ended without a runner', without, loss, skip('other_runner')],
  [
    'its run has been rerun as often as permitted',
    { ...lost, attempt: 2, latestAttempt: 2 },
    loss,
    skip('per_run'),
  ],
  [
    'its run may be rerun once more',
    { ...lost, attempt: 2, latestAttempt: 2 },
    { ...loss, perRun: 2 },
    { kind: 'rerun' },
  ],
];

describe('a job whose runner was lost', () => {
  test.each(ROWS)('%s', (_what, job, facts, expected) => {
    expect(decideRerun(job, facts)).toEqual(expected);
  });
});

test.each([
  ['failure', 'shutdown', { kind: 'rerun' }],
  ['failure', 'lost', { kind: 'rerun' }],
  ['failure', 'cancelled', skip('cancelled')],
  ['failure', 'cancelled_by_credential', skip('cancelled')],
  ['failure', 'none', skip('failed_itself')],
  ['cancelled', 'shutdown', { kind: 'rerun' }],
  ['cancelled', 'lost', skip('cancelled')],
  ['cancelled', 'cancelled', skip('cancelled')],
  ['cancelled', 'cancelled_by_credential', skip('cancelled')],
  ['cancelled', 'none', skip('cancelled')],
] as const)('%s, and the server reports %s', (conclusion, evidence, expected) => {
  expect(decideByEvidence({ conclusion, forceCancelled: false }, evidence)).toEqual(expected);
});

test.each([
  ['failure', 'shutdown', { kind: 'rerun' }],
  ['failure', 'lost', { kind: 'rerun' }],
  ['failure', 'cancelled', skip('cancelled')],
  ['failure', 'cancelled_by_credential', { kind: 'rerun' }],
  ['failure', 'none', skip('failed_itself')],
  ['cancelled', 'shutdown', { kind: 'rerun' }],
  ['cancelled', 'lost', { kind: 'rerun' }],
  ['cancelled', 'cancelled', skip('cancelled')],
  ['cancelled', 'cancelled_by_credential', { kind: 'rerun' }],
  ['cancelled', 'none', { kind: 'rerun' }],
] as const)('force-cancelled: %s, and the server reports %s', (conclusion, evidence, expected) => {
  expect(decideByEvidence({ conclusion, forceCancelled: true }, evidence)).toEqual(expected);
});

test('checks are close together when GitHub concludes lost jobs', () => {
  const delays = [0, 26_000, 5 * 60_000, 9 * 60_000 + 40_000, 12 * 60_000].map(rerunCheckDelayMs);
  expect(delays).toEqual([4_000, 4_000, 30_000, 4_000, 30_000]);
});
