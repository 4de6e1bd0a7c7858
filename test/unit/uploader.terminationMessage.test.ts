/** A step's fault reaches its workflow, even if many files were skipped. */
import { expect, test } from '@jest/globals';
import { MAX_TERMINATION_MESSAGE, terminationMessage } from '../../uploader/terminationMessage.ts';

const parsed = (fields: Parameters<typeof terminationMessage>[0]): Record<string, unknown> => {
  const line = terminationMessage(fields);
  expect(Buffer.byteLength(line)).toBeLessThanOrEqual(MAX_TERMINATION_MESSAGE);
  expect(line.endsWith('\n')).toBe(true);
  return JSON.parse(line) as Record<string, unknown>;
};
const FILES = Array.from({ length: 5_000 }, (_, index) => `reports/number-${index}.xml`);

test('a short message is unchanged', () => {
  expect(parsed({ end: 'stored', skippedFiles: [] })).toEqual({ end: 'stored' });
  expect(parsed({ end: 'stored', skippedFiles: ['a', 'b'] })).toEqual({
    end: 'stored',
    skipped: 2,
    skippedFiles: ['a', 'b'],
  });
});

test('a fault precedes the number of skipped files, of which only a few are listed', () => {
  const fields = parsed({
    end: 'stored',
    skippedFiles: FILES,
    sharedDirFault: 'SHARED_DIR: too much',
  });
  expect(fields).toMatchObject({ sharedDirFault: 'SHARED_DIR: too much', skipped: 5_000 });
  expect(fields['skippedFiles']).toEqual(
    FILES.slice(0, (fields['skippedFiles'] as string[]).length),
  );
  expect((fields['skippedFiles'] as string[]).length).toBeGreaterThan(10);
});

test.each([
  ['long', 'x'.repeat(10_000)],
  ['of many bytes', '\u{1F600}'.repeat(3_000)],
  ['of characters that JSON escapes', '"\n'.repeat(3_000)],
])('a text that is %s is cut', (_what, text) => {
  expect(parsed({ error: text })['error']).toMatch(/.{60}…$/su);
  expect(parsed({ end: 'stored', sharedDirFault: text, skippedFiles: [text] })).toMatchObject({
    skipped: 1,
  });
});
