import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isOpen, isPaused } from '../../../core/domain/workflowStatus.ts';

describe('a workflow is open', () => {
  test.each(['RUNNING', 'PAUSED', 'UNKNOWN'])('while Temporal says %s', (name) => {
    expect(isOpen({ name })).toBe(true);
  });

  test.each(['COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT', 'CONTINUED_AS_NEW'])(
    'and not once its status is %s',
    (name) => {
      expect(isOpen({ name })).toBe(false);
    },
  );

  test('also while it is paused, which is a separate status', () => {
    expect(['RUNNING', 'PAUSED'].map((name) => isPaused({ name }))).toEqual([false, true]);
  });

  test('and no other code decides that from a status, because a paused workflow would count as ended', () => {
    const root = join(import.meta.dirname, '../../..');
    const files = globSync('{core,workflows,activities,worker,cli,demo}/**/*.ts', { cwd: root });
    expect(files.length).toBeGreaterThan(500);
    const deciding = files.filter((file) =>
      /ExecutionStatus = ['"]Running['"]|status\.name [!=]== 'RUNNING'/.test(
        readFileSync(join(root, file), 'utf8'),
      ),
    );
    // Checks a queue that a paused workflow does not wait for.
    expect(deciding).toEqual(['cli/shared/unpolledQueues.ts']);
  });
});
