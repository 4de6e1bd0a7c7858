/** `npm run build:sbom [-- FILE]`: what runs with Holdfast, as CycloneDX. From the lock file alone: the same lock file is the same SBOM. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Component {
  'bom-ref': string;
  name: string;
  version: string;
}

interface Sbom {
  serialNumber?: string;
  metadata: { timestamp?: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

interface Lock {
  name: string;
  packages: Record<string, { version: string; dev?: boolean }>;
}

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const file = resolve(process.argv[2] ?? 'dist/sbom.cdx.json');
const options = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
const sbom = JSON.parse(
  execFileSync('npm', ['sbom', ...options], {
    cwd: PROJECT,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  }),
) as Sbom;
// npm takes the folder's name for the project's, a random number and the time of day.
const { name, packages } = JSON.parse(
  readFileSync(resolve(PROJECT, 'package-lock.json'), 'utf8'),
) as Lock;
sbom.metadata.component.name = name;
delete sbom.serialNumber;
delete sbom.metadata.timestamp;
// Not by --omit dev, which also leaves out what production shares with the tests.
const inProduction = new Set(
  Object.entries(packages).flatMap(([path, { version, dev }]) =>
    dev === true ? [] : [`${path.replace(/^.*node_modules\//, '')}@${version}`],
  ),
);
sbom.components = sbom.components.filter((each) =>
  inProduction.has(`${each.name}@${each.version}`),
);
const kept = new Set([sbom.metadata.component, ...sbom.components].map((each) => each['bom-ref']));
sbom.dependencies = sbom.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({
    ref,
    dependsOn: dependsOn.filter((other) => kept.has(other)),
  }));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
process.stdout.write(`${file}\n`);
