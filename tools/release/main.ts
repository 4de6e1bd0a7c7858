/** Checks whether a tag can be released: `npm run release:check -- TAG`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readQuarantine } from '../ci/quarantine.mjs';
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { COMMAND, PLUGIN } from './packages.ts';
import { packedErrors, type PackedPackage } from './packedErrors.ts';
import { changelogSection, releaseErrors } from './releaseErrors.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

function checkRelease(tag: string): void {
  const changelog = read('CHANGELOG.md');
  const quarantine = readQuarantine(new URL('../../.ci/quarantine', import.meta.url));
  const errors = [
    ...releaseErrors(tag, {
      packageJson: read('package.json'),
      packageLock: read('package-lock.json'),
      changelog,
      chart: read('deploy/chart/Chart.yaml'),
      quarantined: quarantine.map(({ file }) => file),
    }),
    ...builtErrors(),
  ];
  for (const error of errors) process.stderr.write(`error: ${error}\n`);
  if (errors.length > 0) process.exitCode = 1;
  else process.stdout.write(`${changelogSection(changelog, tag.slice(1))}\n`);
}

/** Builds the packages and returns what is missing in them. */
function builtErrors(): string[] {
  // The output of the build goes to stderr: stdout has the release notes alone.
  const stdio = ['ignore', 2, 'inherit'] as const;
  execFileSync('npm', ['run', 'build:packages'], { cwd: ROOT, stdio: [...stdio] });
  return packedErrors(packed(PLUGIN.name), packed(COMMAND.name));
}

/** Returns what npm would publish of a package's folder. */
function packed(name: string): PackedPackage {
  const cwd = join(ROOT, 'dist/packages', name);
  const [answer] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as { files: { path: string }[] }[];
  return {
    files: answer?.files.map(({ path }) => path) ?? [],
    read: (path) => readFileSync(join(cwd, path), 'utf8'),
  };
}

await runCommand(
  createCommand(
    'npm run release:check --',
    'Builds the packages and checks whether the tag can be released. Prints its section of the changelog. Otherwise it prints the errors and exits with 1.',
  )
    .argument('[tag]', 'tag of the release, such as v1.2.3', '')
    .action(checkRelease),
);
