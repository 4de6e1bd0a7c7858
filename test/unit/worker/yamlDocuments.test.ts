import { expect, test } from '@jest/globals';
import { YamlError, yamlDocuments, yamlValue } from '../../../worker/settings/yamlDocuments.ts';

function faults(text: string): string[] {
  try {
    return yamlDocuments(text).map(({ value }) => JSON.stringify(value));
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return [
      error.message,
      ...error.errors.map(({ document, message }) => `${document ?? 'all'}: ${message}`),
    ];
  }
}

const NO_YAML = 'is neither YAML nor JSON: check its syntax';
const deep = JSON.parse(`${'[{"a":'.repeat(150)}1${'}]'.repeat(150)}`) as unknown;

test.each<[string, string, string[]]>([
  ['documents', 'a: 1\n---\n[b]', ['{"a":1}', '["b"]']],
  [
    'a repeated key, at any depth',
    'a:\n  - {b: 1, c: 2, b: 3}\n',
    [NO_YAML, '1: Map keys must be unique at line 2, column 18'],
  ],
  [
    'a repeated key in the second of two documents',
    'a: 1\n---\na: 1\n"a": 2\n',
    [NO_YAML, '2: Map keys must be unique at line 4, column 1'],
  ],
  ['keys that only look equal', '1: a\n"1": b\n~: c\n', ['{"1":"b","":"c"}']],
  [
    'keys that are not strings',
    'a: &a [b]\n[c]: d\n*a : e\n',
    [
      NO_YAML,
      '1: Map keys must be text at line 2, column 1',
      '1: Map keys must be text at line 3, column 1',
    ],
  ],
  [
    'merge keys',
    'a: &a {x: 1}\nb: &b {x: 2}\nc:\n  <<: *a\n  x: 3\n',
    ['{"a":{"x":1},"b":{"x":2},"c":{"x":3}}'],
  ],
  [
    'invalid YAML in the second of two documents',
    'a: 1\n---\nb: "\n',
    [NO_YAML, '2: Missing closing "quote at line 4, column 1'],
  ],
  [
    'deeply nested lists and maps',
    `a: ${JSON.stringify(deep)}\n`,
    [NO_YAML, '1: it is nested too deeply at line 1, column 400'],
  ],
  [
    'deeply nested lists without brackets',
    '- '.repeat(300),
    [NO_YAML, '1: it is nested too deeply at line 1, column 401'],
  ],
  // 2,000 deeply nested claims.
  [
    'a document that is too long',
    JSON.stringify({
      template: { volumeClaims: Array.from({ length: 2_000 }, () => ({ name: deep })) },
    }),
    ['is 2366 KiB long: write at most 256 KiB into one file'],
  ],
])('%s', (_what, text, expected) => expect(faults(text)).toEqual(expected));

test('yamlValue accepts exactly one document', () => {
  expect([yamlValue('a: 1'), yamlValue('')]).toEqual([{ a: 1 }, null]);
  expect(() => yamlValue('a: 1\n---\nb: 1\n')).toThrow(NO_YAML);
});

test('only the first of many errors are reported', () =>
  expect(faults(`[${','.repeat(100)}]`)).toHaveLength(21));

// Each takes tens of seconds if the time grows with the square of the length.
test.each([
  ['keys', `{${Array.from({ length: 20_000 }, (_none, index) => `k${index}: 1`).join(', ')}}`],
  ['nested keys', '? '.repeat(500)],
  ['errors in one line', `[${','.repeat(150_000)}]`],
])('many %s are parsed quickly', (_what, text) => {
  const before = process.threadCpuUsage();
  faults(text);
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1e6).toBeLessThan(8);
});
