/** `npm run chart`: writes what follows from other files: the schema of the chart's values, its copies of rules and dashboards, the table in docs/install.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { derivedFiles } from './derived.ts';

for (const { path, text } of derivedFiles()) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}
