// A quarantined test file that failed is run once more, by itself: what passes then is a flake, which the report names.
//   secondTry.mjs files RESULTS QUARANTINE   prints the files that failed and are quarantined, a line each
//   secondTry.mjs merge RESULTS SECOND       puts the second try's results in the place of the first's, and names what only passed then
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { readQuarantine } from './quarantine.mjs';

const [what, first, second] = process.argv.slice(2);
const results = JSON.parse(readFileSync(first, 'utf8'));
const failed = failedFiles(results);
if (what === 'files') {
  const quarantined = new Set(readQuarantine(second).map(({ file }) => file));
  print(failed.filter((file) => quarantined.has(file)));
} else merge(results, JSON.parse(readFileSync(second, 'utf8')));

function merge(before, after) {
  const again = new Map(after.testResults.map((file) => [file.name, file]));
  const testResults = before.testResults.map((file) => again.get(file.name) ?? file);
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const count = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  writeFileSync(
    first,
    JSON.stringify({
      ...before,
      testResults,
      numPassedTests: count('passed'),
      numFailedTests: count('failed'),
      numPendingTests: count('pending', 'skipped'),
      numRuntimeErrorTestSuites: testResults.filter(isBroken).length,
    }),
  );
  const left = new Set(failedFiles({ testResults }));
  print(
    failed
      .filter((name) => !left.has(name))
      .map((name) => `FLAKE ${name} passed only when it was run again, by itself`),
  );
}

function failedFiles({ testResults }) {
  return testResults
    .filter(({ status }) => status === 'failed')
    .map(({ name }) => relative('', name));
}

/** A file that does not even load has no test. */
function isBroken({ status, assertionResults }) {
  return status === 'failed' && assertionResults.length === 0;
}

function print(lines) {
  for (const line of lines) process.stdout.write(`${line}\n`);
}
