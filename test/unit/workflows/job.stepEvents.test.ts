/** Events of steps, which anyone may send to a job. */
import { describe, expect, test } from '@jest/globals';
import { parseStepEnded, parseStepPodCreated } from '../../../workflows/job/stepEvents.ts';

const ENDED = {
  workflowId: 'job-1-test-unit',
  firstRunId: 'run',
  outcome: 'failed',
  message: 'It exited with code 3.',
  attempt: 2,
  exitCode: 3,
} as const;

describe('the end of a step', () => {
  test.each<[what: string, body: object]>([
    ['with an exit code', ENDED],
    ['before the first attempt', { ...ENDED, attempt: 0 }],
    ['after the last possible attempt', { ...ENDED, attempt: 1_000 }],
    ['with a cause', { ...ENDED, outcome: 'aborted', cause: 'run_timeout' }],
  ])('%s', (_what, body) => {
    expect(parseStepEnded(body)).toEqual(body);
  });

  test.each<[what: string, more: object]>([
    ['an unknown cause', { cause: 'boredom' }],
    ['an exit code that is no whole number', { exitCode: 1.5 }],
  ])('%s is left out', (_what, more) => {
    expect(parseStepEnded({ ...ENDED, ...more })).toEqual({
      ...ENDED,
      ...('exitCode' in more ? { exitCode: undefined } : {}),
    });
  });

  test.each<[what: string, body: unknown]>([
    ['no object', 'failed'],
    ['no workflow ID', { ...ENDED, workflowId: 7 }],
    ['no run ID', { ...ENDED, firstRunId: undefined }],
    ['an unknown outcome', { ...ENDED, outcome: 'fine' }],
    ['no message', { ...ENDED, message: null }],
    ['a negative attempt', { ...ENDED, attempt: -1 }],
    ['half an attempt', { ...ENDED, attempt: 0.5 }],
    ['more attempts than a runner has', { ...ENDED, attempt: 1_001 }],
  ])('%s: it is dropped', (_what, body) => {
    expect(parseStepEnded(body)).toBeUndefined();
  });
});

test.each<[what: string, body: unknown, parsed: unknown]>([
  ['complete', { workflowId: 'w', pod: 'p' }, { workflowId: 'w', pod: 'p' }],
  ['without a pod', { workflowId: 'w' }, undefined],
  ['without a workflow ID', { pod: 'p' }, undefined],
  ['no object', [], undefined],
])('the pod of a step: %s', (_what, body, parsed) => {
  expect(parseStepPodCreated(body)).toEqual(parsed);
});
