/** A step's fault reaches its life however many files were left out. */
import { expect, test } from '@jest/globals';
import { MAX_TERMINATION_MESSAGE, terminationMessage } from '../../uploader/terminationMessage.ts';

const parsed = (said: Parameters<typeof terminationMessage>[0]): Record<string, unknown> => {
  const line = terminationMessage(said);
  expect(Buffer.byteLength(line)).toBeLessThanOrEqual(MAX_TERMINATION_MESSAGE);
  expect(line.endsWith('\n')).toBe(true);
  return JSON.parse(line) as Record<string, unknown>;
};
const FILES = Array.from({ length: 5_000 }, (_, index) => `reports/number-${index}.xml`);

test('what is short stays as it is', () => {
  expect(parsed({ end: 'stored', skippedFiles: [] })).toEqual({ end: 'stored' });
  expect(parsed({ end: 'stored', skippedFiles: ['a', 'b'] })).toEqual({
    end: 'stored',
    skipped: 2,
    skippedFiles: ['a', 'b'],
  });
});

test('a fault comes before a count, and the first few of thousands of files', () => {
  const said = parsed({
    end: 'stored',
    skippedFiles: FILES,
    sharedDirFault: 'SHARED_DIR: too much',
  });
  expect(said).toMatchObject({ sharedDirFault: 'SHARED_DIR: too much', skipped: 5_000 });
  expect(said['skippedFiles']).toEqual(FILES.slice(0, (said['skippedFiles'] as string[]).length));
  expect((said['skippedFiles'] as string[]).length).toBeGreaterThan(10);
});

test.each([
  ['long', 'x'.repeat(10_000)],
  ['of many bytes', '\u{1F600}'.repeat(3_000)],
  ['of what JSON escapes', '"\n'.repeat(3_000)],
])('a text that is %s is cut', (_what, text) => {
  expect(parsed({ error: text })['error']).toMatch(/.{60}…$/su);
  expect(parsed({ end: 'stored', sharedDirFault: text, skippedFiles: [text] })).toMatchObject({
    skipped: 1,
  });
});
