/** `npm run build:bundles [-- FOLDER]`: bundles the compiled workflows, which a Worker without workflows of its own runs. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Compiled from '../../worker/plugin/workflowBundle.ts';

const folder = resolve(process.argv[2] ?? 'dist');
const { writePublishedBundles } = (await import(
  pathToFileURL(resolve(folder, 'worker/plugin/workflowBundle.js')).href
)) as typeof Compiled;
for (const file of await writePublishedBundles()) process.stdout.write(`${file}\n`);
