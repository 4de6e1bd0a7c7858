import { TypedSearchAttributes } from '@temporalio/common';
import { describe, expect, test } from '@jest/globals';
import { SEARCH_ATTRIBUTES, STUCK_RUNNER_MESSAGE } from '../../core/contract/index.ts';
import { toRecordedEnd } from '../../cli/shared/terminationDetails.ts';
import { toRow } from '../../cli/shared/runnerRow.ts';

describe('an end without a verdict, from the last event of the history', () => {
  test.each<[what: string, event: Parameters<typeof toRecordedEnd>[0], end: object | undefined]>([
    [
      'terminated, with a reason',
      {
        workflowExecutionTerminatedEventAttributes: { identity: '4711@host', reason: 'tidying up' },
      },
      {
        outcome: 'terminated',
        terminatedBy: '4711@host',
        message: 'the workflow was terminated by 4711@host: tidying up',
      },
    ],
    [
      'terminated by a sweep',
      {
        workflowExecutionTerminatedEventAttributes: {
          identity: '1@sweep',
          reason: STUCK_RUNNER_MESSAGE,
        },
      },
      {
        outcome: 'terminated',
        terminatedBy: '1@sweep',
        message: 'the workflow was terminated by 1@sweep: worker never came back; forced to fail',
      },
    ],
    [
      'terminated, by an unknown identity',
      { workflowExecutionTerminatedEventAttributes: { identity: '', reason: '' } },
      { outcome: 'terminated', message: 'the workflow was terminated' },
    ],
    [
      'failed',
      { workflowExecutionFailedEventAttributes: {} },
      { outcome: 'failed', message: 'the workflow failed: labels: is empty' },
    ],
    [
      'timed out',
      { workflowExecutionTimedOutEventAttributes: {} },
      { outcome: 'timed_out', message: 'the workflow timed out' },
    ],
    ['none', {}, undefined],
  ])('%s', (_what, event, end) => {
    expect(toRecordedEnd(event, 'labels: is empty')).toEqual(end);
  });
});

test.each<[status: string, phase: 'Busy' | 'Gone', shown: string | undefined]>([
  ['RUNNING', 'Busy', 'Busy'],
  ['COMPLETED', 'Gone', 'Gone'],
  ['CANCELLED', 'Gone', 'Gone'],
  ['TERMINATED', 'Busy', undefined],
  ['TIMED_OUT', 'Busy', undefined],
  ['FAILED', 'Busy', undefined],
  ['CONTINUED_AS_NEW', 'Busy', undefined],
])('a %s runner whose last phase is %s', (name, phase, shown) => {
  const typedSearchAttributes = new TypedSearchAttributes([
    { key: SEARCH_ATTRIBUTES.phase, value: phase },
  ]);
  const row = toRow({
    workflowId: 'runner-a',
    runId: 'r',
    status: { code: 0 as never, name: name as never },
    startTime: new Date(0),
    closeTime: undefined as never,
    typedSearchAttributes,
  });
  expect(row.phase).toBe(shown);
  expect(row.outcome).toBe(name === 'RUNNING' ? undefined : name.toLowerCase());
  expect('phase' in row).toBe(shown !== undefined);
});
