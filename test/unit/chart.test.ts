/** The Helm chart's files, checked without Helm. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { derivedFiles } from '../../tools/chart/derived.ts';
import { chartValues, valuesTable } from '../../tools/chart/values.ts';
import { FULL_VALUES, PLAIN_VALUES } from '../support/chart.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');

test.each(derivedFiles().map(({ path, text }) => [path.slice(PROJECT.length), text]))(
  '%s matches the files from which it is generated (if not, run "npm run chart")',
  (path, text) => {
    expect(read(path)).toBe(text);
  },
);

test('the chart and its images have the version of the package', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(parse(read('deploy/chart/Chart.yaml'))).toMatchObject({ version, appVersion: version });
});

test('a changed CRD of RunnerSet has another revision, because the chart rejects an older one', () => {
  const { metadata, spec } = parse(read('deploy/chart/crds/runnersets.holdfast.dev.yaml')) as {
    metadata: { annotations: Record<string, string> };
    spec: object;
  };
  // Changed it? Raise the revision in the file, and write both here.
  expect([
    metadata.annotations['holdfast.dev/revision'],
    createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 12),
  ]).toEqual(['1', '5035365a342e']);
});

test("containerMode uses GitHub's runner image unless another is named", () => {
  expect(read('deploy/chart/templates/_sets.tpl')).toContain(
    `default "${GITHUB_RUNNER.image.name}"`,
  );
});

test('no template is longer than a code file may be', () => {
  for (const name of readdirSync(join(PROJECT, 'deploy/chart/templates')))
    expect([name, read(`deploy/chart/templates/${name}`).split('\n').length <= 300]).toEqual([
      name,
      true,
    ]);
});

describe('the values', () => {
  const values = chartValues(read('deploy/chart/values.yaml'));

  test('each have a description, unless the name suffices', () => {
    const silent = values.filter(({ text }) => text === '').map(({ path }) => path);
    expect(
      silent.filter(
        (path) =>
          !/\.(replicas|resources|podSpec|podLabels|podAnnotations|podDisruptionBudget|annotations|labels|interval|enabled|schedule|className|host|minReplicas|maxReplicas|pullPolicy|type|port|namespace)$/.test(
            path,
          ),
      ),
    ).toEqual([]);
  });

  test('are each used by a template', () => {
    const templates = readdirSync(join(PROJECT, 'deploy/chart/templates'))
      .map((name) => read(`deploy/chart/templates/${name}`))
      .join('\n');
    for (const { path } of values)
      expect([path, templates.includes(`.${path.split('.').at(-1)}`)]).toEqual([path, true]);
  });

  test('as a table: default and description, which may have several lines, of those with one', () => {
    expect(
      valuesTable(
        chartValues(
          '# -- one\n# two | three\na: ""\n# -- five\nb:\n  # -- four\n  c: [1]\n  d: {}\n',
        ),
      ),
    ).toBe(
      '| Value | Default | Meaning |\n|---|---|---|\n| `a` | – | one two \\| three |\n| `b` |  | five |\n| `b.c` | `[1]` | four |',
    );
  });

  test('pass their schema, which is valid', () => {
    const validate = new Ajv2020({ strict: false }).compile(
      JSON.parse(read('deploy/chart/values.schema.json')) as object,
    );
    for (const each of [parse(read('deploy/chart/values.yaml')), PLAIN_VALUES, FULL_VALUES]) {
      validate(each);
      expect(validate.errors).toBeNull();
    }
    expect(validate({ image: { repositry: 'x' } })).toBe(false);
  });
});
