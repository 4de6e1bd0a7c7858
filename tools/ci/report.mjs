// What a reader of a run wants last: which test files were slow, and every failure in full, which a log cut in the middle would lose.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const SLOWEST = 10;
/** Of each failure; its stack and what a poll saw last are longer at times than anybody reads. */
const MOST_LINES = 60;

const { testResults = [] } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
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
    fail(`${name} › ${fullName}`, failureMessages.join('\n'));
  // A file that does not even load has no test.
  if (tests.length === 0 && message !== '') fail(name, message);
}

function fail(what, why) {
  const lines = stripVTControlCharacters(why).split('\n');
  print(
    `\nFAILED ${what}\n${lines.slice(0, MOST_LINES).join('\n')}${lines.length > MOST_LINES ? `\n… ${lines.length - MOST_LINES} more lines` : ''}`,
  );
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
