// Prints the end of a test run: the slowest test files, and every failure in full, which a truncated
// log would lose.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { createCommand, runCommand } from '../shared/commandLine.ts';

const SLOWEST = 10;
/** Maximum number of lines of each failure, with its stack and the last result of a poll. */
const MAX_LINES = 60;

function report(resultsFile) {
  const { testResults = [] } = JSON.parse(readFileSync(resultsFile, 'utf8'));
  const files = testResults.map(({ name, startTime, endTime, message, assertionResults = [] }) => ({
    name: relative('', name),
    seconds: (endTime - startTime) / 1000,
    message,
    tests: assertionResults,
  }));
  print('the ten slowest test files');
  for (const { name, seconds } of files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST))
    print(`${seconds.toFixed(0).padStart(5)} s  ${name}`);
  for (const { name, message, tests } of files) {
    for (const { fullName, failureMessages } of tests.filter(({ status }) => status === 'failed'))
      printFailure(`${name} > ${fullName}`, failureMessages.join('\n'));
    // A file that fails to load has no tests.
    if (tests.length === 0 && message !== '') printFailure(name, message);
  }
}

function printFailure(test, message) {
  const lines = stripVTControlCharacters(message).split('\n');
  const shown = lines.slice(0, MAX_LINES).join('\n');
  const more = lines.length - MAX_LINES;
  print(`\nFAILED ${test}\n${shown}${more > 0 ? `\n... ${more} more lines` : ''}`);
}

function print(text) {
  process.stdout.write(`${text}\n`);
}

await runCommand(
  createCommand(
    'node tools/ci/report.mjs',
    'Prints the ten slowest test files and every failure of a test run.',
  )
    .argument('<results>', "file with jest's results (--json --outputFile)")
    .action(report),
);
