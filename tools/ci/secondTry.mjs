// A quarantined test file that failed runs once more, by itself. If it passes then, it is flaky.
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { readQuarantine } from './quarantine.mjs';
import { createCommand, runCommand } from '../shared/commandLine.ts';

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

function listFailed(resultsFile, quarantineFile) {
  const quarantined = new Set(readQuarantine(quarantineFile).map(({ file }) => file));
  print(failedFiles(readJson(resultsFile)).filter((file) => quarantined.has(file)));
}

function merge(resultsFile, secondFile) {
  const first = readJson(resultsFile);
  const second = new Map(readJson(secondFile).testResults.map((file) => [file.name, file]));
  const testResults = first.testResults.map((file) => second.get(file.name) ?? file);
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const count = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  writeFileSync(
    resultsFile,
    JSON.stringify({
      ...first,
      testResults,
      numPassedTests: count('passed'),
      numFailedTests: count('failed'),
      numPendingTests: count('pending', 'skipped'),
      numRuntimeErrorTestSuites: testResults.filter(isBroken).length,
    }),
  );
  const stillFailed = new Set(failedFiles({ testResults }));
  print(
    failedFiles(first)
      .filter((name) => !stillFailed.has(name))
      .map((name) => `FLAKE ${name} passed only when it was run again, by itself`),
  );
}

function failedFiles({ testResults }) {
  return testResults
    .filter(({ status }) => status === 'failed')
    .map(({ name }) => relative('', name));
}

/** Whether the file failed to load; then it has no tests. */
function isBroken({ status, assertionResults }) {
  return status === 'failed' && assertionResults.length === 0;
}

function print(lines) {
  for (const line of lines) process.stdout.write(`${line}\n`);
}

const command = createCommand(
  'node tools/ci/secondTry.mjs',
  'Handles quarantined test files that failed: they run a second time.',
);
command
  .command('files')
  .description('Print the files that failed and are quarantined, one per line')
  .argument('<results>', "file with jest's results of the first run")
  .argument('<quarantine>', 'list of quarantined test files')
  .action(listFailed);
command
  .command('merge')
  .description('Replace results of the first run by those of the second, and print flaky files')
  .argument('<results>', "file with jest's results of the first run, which is overwritten")
  .argument('<second>', "file with jest's results of the second run")
  .action(merge);
await runCommand(command);
