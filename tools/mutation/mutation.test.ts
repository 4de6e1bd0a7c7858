import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { MutantTests } from '../shared/mutantTests.ts';
import { mutantsOf } from './mutants.ts';
import { chooseMutants } from './mutationRun.ts';
import { folderScores, mutationScore } from './mutationScore.ts';
import { ImportGraph } from './relatedTests.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test.each<[source: string, changes: readonly (readonly [kind: string, result: string])[]]>([
  [
    '/** ä */\nif (a) b = 1;',
    [
      ['condition never true', '/** ä */\nif (false) b = 1;'],
      ['condition negated', '/** ä */\nif (!(a)) b = 1;'],
    ],
  ],
  ['const x = a < b;', [['operator', 'const x = a <= b;']]],
  ['const x = a === b;', [['operator', 'const x = a !== b;']]],
  ['const x = a ?? b;', [['operator', 'const x = ((a) && (b));']]],
  ['const x = true;', [['boolean', 'const x = false;']]],
  ['f();', [['call removed', ';']]],
  ['await f();', [['call removed', ';']]],
  ['type T = true;', []],
  ['const x = f();', []],
])('the mutants of %j', (source, changes) => {
  const mutants = mutantsOf('file.ts', source);
  expect(mutants.map(({ kind, text }) => [kind, text])).toEqual(changes);
});

test('a mutant has the line and the text of its change', () => {
  expect(mutantsOf('file.ts', 'const a = 1;\nconst b = a > 0;\n')).toMatchObject([
    { file: 'file.ts', line: 2, original: '>', replacement: '>=' },
  ]);
});

test('the unit tests of a file are those that import it, the nearest first', () => {
  const graph = new ImportGraph(ROOT);
  const tests = graph.testsOf('core/domain/cancellation.ts');
  expect(tests[0]).toBe('test/unit/core/cancellation.test.ts');
  expect(tests.length).toBeGreaterThan(1);
  expect(graph.testsOf('tools/mutation/mutants.ts')).toEqual([]);
});

test('a seed chooses the sample', () => {
  const choose = (seed: number): string[] =>
    chooseMutants({ seed, sample: 5, concurrency: 1, files: ['core/domain/*.ts'] }).map(
      ({ file, line, kind }) => `${file}:${line} ${kind}`,
    );
  expect(choose(1)).toEqual(choose(1));
  expect(choose(1)).not.toEqual(choose(2));
});

test('a mutant that a test notices is killed by that test, and the original passes', async () => {
  const tests = new MutantTests();
  try {
    const files = ['test/unit/core/cancellation.test.ts'];
    const file = 'core/domain/cancellation.ts';
    expect(await tests.failingTest({ file, text: 'export {};' }, files)).toMatch(/\S/);
    expect(await tests.failingTestOfOriginal(files)).toBeUndefined();
  } finally {
    tests.close();
  }
});

test('the score counts killed mutants and those that time out', () => {
  const results = (['killed', 'timeout', 'survived', 'no coverage'] as const).map((result) => ({
    file: 'a/b.ts',
    result,
  }));
  expect(mutationScore(results)).toBe(50);
  expect(mutationScore([])).toBeUndefined();
  expect(folderScores(results)).toEqual([{ folder: 'a', mutants: 4, killed: 2 }]);
});
