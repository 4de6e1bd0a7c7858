/** Every export has a sentence that says what it is for. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

const FOLDERS = ['core', 'activities', 'workflows', 'worker', 'cli', 'supervisor', 'uploader'];
/** As the formatter leaves it: an export begins its line. */
const EXPORT =
  /^export (?:default )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|enum) (\w+)/;
const TSDOC_END = /\*\/$/;
const TSDOC_START = /^\/\*\*/;

/** Names of exports in a text without TSDoc right before them. */
function undocumented(text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const name = EXPORT.exec(line)?.[1];
    if (name === undefined || hasTsdoc(lines, index - 1)) return [];
    // The implementation of an overloaded function, whose signatures are documented.
    return new RegExp(`^export .*\\b${name}\\(`).test(lines[index - 1] ?? '') ? [] : [name];
  });
}

function hasTsdoc(lines: readonly string[], last: number): boolean {
  if (!TSDOC_END.test(lines[last] ?? '')) return false;
  for (let index = last; index >= 0; index--) {
    const line = lines[index] ?? '';
    if (TSDOC_START.test(line)) return true;
    if (!/^ ?\*/.test(line.trimStart())) return false;
  }
  return false;
}

test('an export without TSDoc is found', () => {
  expect(undocumented('/** Says it. */\nexport const a = 1;\n\nexport type B = string;')).toEqual([
    'B',
  ]);
  expect(undocumented('/**\n * Says it.\n */\nexport function a(): void {}')).toEqual([]);
  expect(undocumented('// No TSDoc.\nexport class A {}')).toEqual(['A']);
});

test('every export has TSDoc', () => {
  const files = execFileSync('git', ['ls-files', ...FOLDERS], { cwd: PROJECT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  expect(files.length).toBeGreaterThan(400);
  expect(
    files.flatMap((file) =>
      undocumented(readFileSync(join(PROJECT, file), 'utf8')).map((name) => `${file}: ${name}`),
    ),
  ).toEqual([]);
});
