/** `npm run schemas` */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { schemaFiles } from './schemaFiles.ts';

for (const { path, text } of schemaFiles()) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}
