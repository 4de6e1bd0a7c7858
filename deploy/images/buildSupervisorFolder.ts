/** `npm run build:supervisor-folder [-- FOLDER]` */
import { resolve } from 'node:path';
import { makeSupervisorFolder } from './supervisorFolder.ts';

const folder = resolve(process.argv[2] ?? 'dist/supervisor');
await makeSupervisorFolder(folder);
process.stdout.write(`${folder}\n`);
