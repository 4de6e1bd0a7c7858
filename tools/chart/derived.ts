import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { admissionPolicyText } from './admissionPolicy.ts';
import { valuesSchemaText } from './schema.ts';
import { chartValues, valuesTable } from './values.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

const TABLE = /(<!-- values: npm run chart -->\n)[^]*?(<!-- \/values -->)/;

/** Returns the generated files. A test compares them with those in the repository. */
export function derivedFiles(): { path: string; text: string }[] {
  const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
  const values = read('deploy/chart/values.yaml');
  const docs = read('docs/install.md');
  if (!TABLE.test(docs))
    throw new Error('docs/install.md: the table of the values has lost its marks');
  return [
    { path: 'deploy/chart/values.schema.json', text: valuesSchemaText(values) },
    // A chart has its own files only.
    { path: 'deploy/chart/files/rules.yaml', text: read('deploy/prometheus/rules.yaml') },
    { path: 'deploy/chart/files/admission-policy.json', text: admissionPolicyText() },
    ...readdirSync(join(PROJECT, 'deploy/grafana')).map((name) => ({
      path: `deploy/chart/files/grafana/${name}`,
      text: read(`deploy/grafana/${name}`),
    })),
    {
      path: 'docs/install.md',
      text: docs.replace(
        TABLE,
        (_, head: string, end: string) => `${head}\n${valuesTable(chartValues(values))}\n\n${end}`,
      ),
    },
  ].map(({ path, text }) => ({ path: join(PROJECT, path), text }));
}
