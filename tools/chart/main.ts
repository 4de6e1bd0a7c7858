/** `npm run chart`: writes what follows from other files: the schema of the chart's values, its copy of the rules, the table in docs/install.md. */
import { writeFileSync } from 'node:fs';
import { derivedFiles } from './derived.ts';

for (const { path, text } of derivedFiles()) {
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}
