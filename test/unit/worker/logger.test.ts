import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../../../worker/process/logger.ts';

/** A text that a job may write: it clears the screen, and imitates a line of the worker. */
const TAIL = 'done\n12:00:00 ERROR credential refused\u001B[2J\u009B31m\u202E';

describe.each(['json', 'text'] as const)('the log as %s', (format) => {
  const written: string[] = [];
  const logger = createLogger(
    { level: 'info', format },
    { write: (line) => void written.push(line) },
  );
  logger.warn({ pod: 'a', tail: TAIL }, 'the last lines of a runner that did not succeed');
  logger.error({ err: new Error(TAIL) }, TAIL);

  test('has one line for each message, with any text of a runner or server', () => {
    expect(written.map((line) => line.split('\n').length)).toEqual([2, 2]);
    expect(written.every((line) => line.endsWith('\n'))).toBe(true);
  });

  test('has no terminal control characters, and loses no text', () => {
    for (const line of written)
      // oxlint-disable-next-line no-control-regex -- the test checks that none is written
      expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/);
    for (const line of written)
      expect(line).toContain('done\\n12:00:00 ERROR credential refused\\u001b[2J\\u009b31m\\u202e');
  });
});

test('as text: time, level, message, and the fields', () => {
  const written: string[] = [];
  createLogger(
    { level: 'info', format: 'text' },
    { write: (line) => void written.push(line) },
  ).info({ pod: 'a', of: { id: 1 } }, 'a message');
  expect(written).toEqual([
    expect.stringMatching(/^\d\d:\d\d:\d\d INFO {2}a message pod=a of=\{"id":1\}\n$/),
  ]);
});
