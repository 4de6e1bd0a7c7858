/** `npm run licenses` */
import { writeFileSync } from 'node:fs';
import { licensePage } from './licenses.ts';
import { PROJECT, productionPackages } from './lockFile.ts';

writeFileSync(`${PROJECT}/docs/licenses.md`, licensePage(productionPackages()));
