/** `npm run release:check -- TAG`: builds the packages and checks whether the tag may be released. Prints its section of the changelog, or with status 1 the reasons against it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readQuarantine } from '../ci/quarantine.mjs';
import { COMMAND, PLUGIN } from './packages.ts';
import { packedErrors, type PackedPackage } from './packedErrors.ts';
import { changelogSection, releaseErrors } from './releaseErrors.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const [tag = ''] = process.argv.slice(2);
const changelog = read('CHANGELOG.md');
const faults = [
  ...releaseErrors(tag, {
    packageJson: read('package.json'),
    packageLock: read('package-lock.json'),
    changelog,
    chart: read('deploy/chart/Chart.yaml'),
    quarantined: readQuarantine(new URL('../../.ci/quarantine', import.meta.url)).map(
      ({ file }) => file,
    ),
  }),
  ...builtErrors(),
];
for (const fault of faults) process.stderr.write(`error: ${fault}\n`);
if (faults.length > 0) process.exit(1);
process.stdout.write(`${changelogSection(changelog, tag.slice(1))}\n`);

/** Builds the packages and returns what they lack. */
function builtErrors(): string[] {
  // The output of the build is not part of the release's notes.
  const stdio = ['ignore', 2, 'inherit'] as const;
  execFileSync('npm', ['run', 'build:packages'], { cwd: ROOT, stdio: [...stdio] });
  return packedErrors(packed(PLUGIN.name), packed(COMMAND.name));
}

/** What npm would publish of a package's folder. */
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
