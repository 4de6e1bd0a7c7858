/**
 * Runs jest on one tier of the tests (`npm test`, `npm run test:unit` and so on), and prints which
 * tests were not run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { createCommand } from '../shared/commandLine.ts';
import { isTierName, jestArgs, leftOut, TIERS, type Tier } from './tiers.ts';

const [name, ...args] = process.argv.slice(2);
if (!isTierName(name))
  throw new Error(
    `unsupported tier "${name ?? ''}"; must be one of ${Object.keys(TIERS).join(', ')}`,
  );
const tier: Tier = TIERS[name];
if (args.some((argument) => argument === '--help' || argument === '-h')) {
  const invocation = `${tier.command} --`;
  createCommand(invocation, `Runs the tests of: ${tier.projects.join(', ')}.`)
    .usage('[paths or options of jest]')
    .addHelpText(
      'after',
      `
All options are passed to jest, which rejects unknown ones; "npx jest --help" lists them.
HOLDFAST_REQUIRE names components that must not be missing${tier.require === undefined ? '' : ` (default: ${tier.require})`}.

Examples:
  ${invocation} test/unit/docs.test.ts
  ${invocation} --watch
  ${invocation} -t 'name of a test'`,
    )
    .outputHelp();
  process.exit(0);
}

const jest = createRequire(import.meta.url).resolve('jest/bin/jest');
const isPath = (argument: string): boolean =>
  !argument.startsWith('-') && (argument.includes('/') || existsSync(argument));
// The terminal sends SIGINT to jest too. Jest stops its components, and this process returns its
// status.
process.on('SIGINT', () => undefined);
const { status, signal } = spawnSync(process.execPath, [jest, ...jestArgs(name, args, isPath)], {
  stdio: 'inherit',
  env: {
    ...process.env,
    NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --experimental-vm-modules`.trim(),
    HOLDFAST_REQUIRE: process.env['HOLDFAST_REQUIRE'] ?? tier.require ?? '',
  },
});

if (args.length === 0) {
  const lines = leftOut(tier, (folder) => globSync(`${folder}/**/*.test.ts`));
  if (lines.length > 0)
    process.stderr.write(
      `\nNot run by this command:\n${lines.join('\n')}\n  ${TIERS.all.command.padEnd(24)}  all tests except those of the line before, as for a release\n`,
    );
}
process.exitCode = signal === null ? (status ?? 1) : 128 + constants.signals[signal];
