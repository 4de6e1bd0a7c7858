/** Writes the page of the dependencies' licenses: `npm run licenses`. */
import { writeFileSync } from 'node:fs';
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { licensePage } from './licenses.ts';
import { PROJECT, productionPackages } from './lockFile.ts';

await runCommand(
  createCommand(
    'npm run licenses --',
    'Writes docs/licenses.md: the licenses of all production packages of package-lock.json.',
  ).action(() => writeFileSync(`${PROJECT}/docs/licenses.md`, licensePage(productionPackages()))),
);
