/** Writes the JSON schemas of inputs: `npm run schemas`. */
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { writeFiles } from '../shared/writeFiles.ts';
import { schemaFiles } from './schemaFiles.ts';

await runCommand(
  createCommand(
    'npm run schemas --',
    'Writes the JSON schemas of runners, sets, jobs and policies into schemas/. Prints the path of each file.',
  ).action(() => writeFiles(schemaFiles())),
);
