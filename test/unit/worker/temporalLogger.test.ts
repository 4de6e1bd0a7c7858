import { expect, test } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { createLogger } from '../../../worker/process/logger.ts';
import { temporalLogger } from '../../../worker/temporal/temporalLogger.ts';

const META = {
  sdkComponent: 'activity',
  taskToken: 'CiQ2'.repeat(200),
  activityType: 'provision',
  workflowType: 'runner',
  workflowId: 'runner-linux-a',
  workflowRunId: 'r',
  attempt: 3,
  durationMs: 12,
};

function logged(error: unknown): Record<string, unknown> {
  const lines: string[] = [];
  const logger = createLogger(
    { level: 'info', format: 'json' },
    { write: (line) => void lines.push(line) },
  );
  temporalLogger(logger).warn('Activity failed', { ...META, error });
  return JSON.parse(lines[0] ?? '') as Record<string, unknown>;
}

test('a declared failure of an activity is one short line: type, attempt, message', () => {
  const cause = new Error('the whole answer of a server\n'.repeat(100));
  const line = logged(
    ApplicationFailure.create({ message: `no ${'x'.repeat(900)}`, type: 'PodInvalid', cause }),
  );
  expect(line).toMatchObject({
    msg: 'Activity failed',
    activityType: 'provision',
    workflowId: 'runner-linux-a',
    attempt: 3,
    failure: 'PodInvalid',
  });
  expect(line['error']).toHaveLength(500);
  expect(JSON.stringify(line)).not.toMatch(/CiQ2|stack|whole answer/);
});

test('a defect keeps its stack trace', () => {
  expect(logged(new TypeError('x is not a function'))).toMatchObject({
    attempt: 3,
    err: { type: 'TypeError', stack: expect.stringContaining('temporalLogger.test') },
  });
});
