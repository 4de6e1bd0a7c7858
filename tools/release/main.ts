/** `npm run release:check -- TAG`: builds the package and checks whether the tag may be released. Prints its section of the changelog, or with status 1 the reasons against it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readQuarantine } from '../ci/quarantine.mjs';
import { packedErrors } from './packedErrors.ts';
import { changelogSection, releaseErrors } from './releaseErrors.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
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
  ...packedErrors({ files: packedFiles(), read }),
];
for (const fault of faults) process.stderr.write(`error: ${fault}\n`);
if (faults.length > 0) process.exit(1);
process.stdout.write(`${changelogSection(changelog, tag.slice(1))}\n`);

/** The paths of the files that npm would publish, after a build. */
function packedFiles(): string[] {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  // The output of the build is not part of the release's notes.
  execFileSync('npm', ['run', 'build'], { cwd, stdio: ['ignore', 2, 'inherit'] });
  const options = ['--dry-run', '--json', '--ignore-scripts'];
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', ...options], {
      cwd,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as { files: { path: string }[] }[];
  return packed?.files.map(({ path }) => path) ?? [];
}
