/** `npm test`, `npm run test:unit` and so on: runs jest on one tier of the tests, and says what was not run. */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { isTierName, jestArgs, leftOut, TIERS, type Tier } from './tiers.ts';

const [name, ...args] = process.argv.slice(2);
if (!isTierName(name))
  throw new Error(
    `unsupported tier "${name ?? ''}"; must be one of ${Object.keys(TIERS).join(', ')}`,
  );
const tier: Tier = TIERS[name];

const jest = createRequire(import.meta.url).resolve('jest/bin/jest');
const isPath = (argument: string): boolean =>
  !argument.startsWith('-') && (argument.includes('/') || existsSync(argument));
// The terminal sends an interrupt to both: jest takes down what it has brought up, and its status is ours.
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
      `\nNot run by this command:\n${lines.join('\n')}\n  ${TIERS.all.command.padEnd(24)}  everything but the last line, as for a release\n`,
    );
}
process.exitCode = signal === null ? (status ?? 1) : 128 + constants.signals[signal];
