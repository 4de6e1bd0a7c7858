/** `npm run build:supervisor [-- FILE]` */
import { resolve } from 'node:path';
import { bundleSupervisor } from './supervisorFolder.ts';

const file = resolve(process.argv[2] ?? 'dist/supervisor/supervisor.mjs');
await bundleSupervisor(file);
process.stdout.write(`${file}\n`);
