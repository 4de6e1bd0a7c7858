/** Comments of the product: every export has a sentence, and none uses the words that CONTRIBUTING.md excludes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

const FOLDERS = ['core', 'activities', 'workflows', 'worker', 'cli', 'supervisor', 'uploader'];
/** The formatter puts every export at the start of a line. */
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

/** Words without a clear meaning for a reader who does not know the code. */
const UNCLEAR =
  /\b(shall|anew|besides?|of late|hence|lies in|goes by|comes up|takes up|hearsay|somebody|everybody|nobody|whom|whoever|told|tells|heard|trouble|mends?|once more|under way)\b/i;
/** First words of a sentence without a subject. */
const WITHOUT_SUBJECT = /^(Of|Those|What|By which|Who|Whose|So long|Whoever|Nobody|None of)\b/;

/** Comments of a text that use such a word, or describe a declaration without a subject. */
function unclear(text: string): string[] {
  const docs = [...text.matchAll(/\/\*\*([^]*?)\*\//g)].map(([, doc = '']) =>
    doc.replaceAll(/\n\s*\* ?/g, ' ').trim(),
  );
  const lines = [...text.matchAll(/^\s*\/\/ (.*)$/gm)].map(([, line = '']) => line);
  return [
    ...docs.filter((doc) => UNCLEAR.test(doc) || WITHOUT_SUBJECT.test(doc)),
    ...lines.filter((line) => UNCLEAR.test(line)),
  ];
}

function productFiles(): string[] {
  return execFileSync('git', ['ls-files', ...FOLDERS], { cwd: PROJECT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
}

test('a comment without a subject is found, and so is an unclear word', () => {
  expect(unclear('/** Of the current attempt. */\nconst a = 1;')).toHaveLength(1);
  expect(unclear('/**\n * Reads it\n * anew.\n */')).toHaveLength(1);
  expect(unclear('  // The pod shall end.\n')).toHaveLength(1);
  expect(unclear('/** Failure of the current attempt. */\n// The pod must end.\n')).toEqual([]);
});

test('no comment is unclear', () => {
  const found = productFiles().flatMap((file) =>
    unclear(readFileSync(join(PROJECT, file), 'utf8')).map((comment) => `${file}: ${comment}`),
  );
  expect(found).toEqual([]);
});

test('an export without TSDoc is found', () => {
  expect(undocumented('/** Says it. */\nexport const a = 1;\n\nexport type B = string;')).toEqual([
    'B',
  ]);
  expect(undocumented('/**\n * Says it.\n */\nexport function a(): void {}')).toEqual([]);
  expect(undocumented('// No TSDoc.\nexport class A {}')).toEqual(['A']);
});

test('every export has TSDoc', () => {
  const files = productFiles();
  expect(files.length).toBeGreaterThan(400);
  expect(
    files.flatMap((file) =>
      undocumented(readFileSync(join(PROJECT, file), 'utf8')).map((name) => `${file}: ${name}`),
    ),
  ).toEqual([]);
});
