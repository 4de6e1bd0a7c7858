/** Writes the chart's generated files: `npm run chart`. */
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { writeFiles } from '../shared/writeFiles.ts';
import { derivedFiles } from './derived.ts';

await runCommand(
  createCommand(
    'npm run chart --',
    "Writes the schema of the chart's values, the chart's copies of alert rules and dashboards, and the table of values in docs/install.md. Prints the path of each file.",
  ).action(() => writeFiles(derivedFiles())),
);
