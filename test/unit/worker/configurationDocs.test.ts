import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { settings } from '../../../worker/settings/settings.ts';

/** The table of docs/configuration.md has exactly one row for each setting of the schema. */
function rows(): string[] {
  return Object.entries(settings.shape).map(([name, schema]) => {
    const { def } = schema as { def: { type: string; defaultValue?: string } };
    const value = def.type === 'prefault' ? `\`${def.defaultValue}\`` : '–';
    return `| \`${name}\` | ${value} | ${(schema.description ?? '').replaceAll('|', '\\|')} |`;
  });
}

describe('docs/configuration.md', () => {
  const docs = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');

  test('has exactly the settings of the schema, with their defaults', () => {
    expect(docs.split('\n').filter((line) => /^\| `(HOLDFAST|TEMPORAL)_/.test(line))).toEqual(
      rows(),
    );
  });

  test('every setting has a description', () => {
    for (const [name, schema] of Object.entries(settings.shape))
      expect([name, schema.description ?? '']).toEqual([
        name,
        expect.stringMatching(/^[A-Z`].{20,}[.:]/),
      ]);
  });
});
