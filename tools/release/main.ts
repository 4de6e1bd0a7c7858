/** `npm run release:check -- TAG`: may it be released? Prints its part of the changelog; with status 1 what keeps it. */
import { readFileSync } from 'node:fs';
import { changelogSection, releaseFaults } from './releaseErrors.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const [tag = ''] = process.argv.slice(2);
const changelog = read('CHANGELOG.md');
const faults = releaseFaults(tag, {
  packageJson: read('package.json'),
  packageLock: read('package-lock.json'),
  changelog,
  chart: read('deploy/chart/Chart.yaml'),
});
for (const fault of faults) process.stderr.write(`error: ${fault}\n`);
if (faults.length > 0) process.exit(1);
process.stdout.write(`${changelogSection(changelog, tag.slice(1))}\n`);
