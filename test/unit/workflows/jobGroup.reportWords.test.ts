/** What is reported of the newest version of a change set, and how it is put. */
import { describe, expect, test } from '@jest/globals';
import { reportName } from '../../../core/domain/changeSet.ts';
import type { ReportedState } from '../../../core/contract/index.ts';
import type { GroupState } from '../../../workflows/jobGroup/groupState.ts';
import {
  reportWords,
  reportedState,
  supersededWords,
  type RunEnd,
} from '../../../workflows/jobGroup/reportWords.ts';

test.each<[what: string, state: GroupState, expected: ReportedState | undefined]>([
  ['nothing has come yet', { generation: 0, waits: false }, undefined],
  ['the first waits to be begun', { generation: 1, commit: 'a', waits: true }, 'queued'],
  [
    'it runs',
    { generation: 1, commit: 'a', waits: false, running: { generation: 1, superseded: false } },
    'running',
  ],
  [
    'a newer one waits for its end',
    { generation: 2, commit: 'b', waits: true, running: { generation: 1, superseded: true } },
    'queued',
  ],
  ['it is over', { generation: 1, commit: 'a', waits: false, outcome: 'failed' }, 'failed'],
])('%s', (_what, state, expected) => {
  expect(reportedState(state)).toBe(expected);
});

describe('the words', () => {
  const end = (outcome: RunEnd['outcome'], message: string, cause?: RunEnd['cause']): RunEnd => ({
    outcome,
    message,
    steps: [],
    ...(cause === undefined ? {} : { cause }),
  });

  test.each<[ReportedState, RunEnd | undefined, string]>([
    ['queued', undefined, 'Queued.'],
    ['running', undefined, 'Running.'],
    ['running', end('aborted', 'of an older run'), 'Running.'],
    ['succeeded', end('succeeded', 'Each step that counts succeeded.'), 'Succeeded.'],
    [
      'failed',
      end('failed', 'Not every step succeeded: test unit failed.'),
      'Failed. Not every step succeeded: test unit failed.',
    ],
    [
      'errored',
      end(
        'errored',
        'Not every step succeeded: pre rent errored/pending_timeout.',
        'pending_timeout',
      ),
      'Infrastructure: somebody should look. Not every step succeeded: pre rent errored/pending_timeout.',
    ],
    [
      'aborted',
      end(
        'aborted',
        'The job was ended (run_timeout, stop): it ran for 2h (timeout).',
        'run_timeout',
      ),
      'Aborted. The job was ended (run_timeout, stop): it ran for 2h (timeout).',
    ],
  ])('%s', (state, ended, description) => {
    expect(reportWords(state, ended).description).toBe(description);
  });

  test('of an older version', () => {
    expect(supersededWords('4f2a9c1')).toEqual({
      description: 'Superseded by 4f2a9c1.',
      details: [],
      cause: 'superseded',
    });
  });

  test('a line for each step, with why it did not succeed', () => {
    const steps: RunEnd['steps'] = [
      {
        stage: 'pre',
        name: 'rent',
        workflowId: 'w',
        state: 'ended',
        outcome: 'succeeded',
        message: 'fine',
      },
      {
        stage: 'test',
        name: 'unit',
        workflowId: 'w',
        state: 'ended',
        outcome: 'failed',
        message: 'The command exited with 1.',
      },
      {
        stage: 'test',
        name: 'e2e',
        workflowId: 'w',
        state: 'not run',
        message: 'test unit failed',
      },
      {
        stage: 'post',
        name: 'give-back',
        workflowId: 'w',
        state: 'ended',
        outcome: 'aborted',
        cause: 'run_timeout',
      },
    ];
    expect(
      reportWords('failed', { outcome: 'failed', cause: 'oom_killed', message: 'Why.', steps }),
    ).toEqual({
      description: 'Failed. Why.',
      cause: 'oom_killed',
      details: [
        'pre rent: succeeded',
        'test unit: failed: The command exited with 1.',
        'test e2e: not run: test unit failed',
        'post give-back: aborted/run_timeout',
      ],
    });
  });
});

test.each([
  ['job-group:unit:acme/web:main:pr-7', 'unit'],
  ['job-group:unit:acme/web:main:push', 'unit (push)'],
  ['mine', 'unit'],
])(
  'of %s the reports are named %s: a commit that is pushed, and in a pull request, has both',
  (group, expected) => {
    expect(reportName(group, 'unit')).toBe(expected);
  },
);
