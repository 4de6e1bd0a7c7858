/** The checks of a release, and the workflow that publishes it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { packedErrors, type PackedPackage } from './packedErrors.ts';
import { changelogSection, releaseErrors, type ReleaseFiles } from './releaseErrors.ts';
import { folderToRecord } from '../../test/replay/histories.ts';
import { PROJECT } from '../../test/support/markdown.ts';

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const REAL: ReleaseFiles = {
  packageJson: read('package.json'),
  packageLock: read('package-lock.json'),
  changelog: read('CHANGELOG.md'),
  chart: read('deploy/chart/Chart.yaml'),
  quarantined: [],
};
const { version } = JSON.parse(REAL.packageJson) as { version: string };

const GOOD: ReleaseFiles = {
  packageJson: '{"version": "1.2.3", "repository": "github:acme/holdfast"}',
  packageLock: '{"version": "1.2.3"}',
  changelog:
    '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2027-01-31\n\n### Added\n\n- A thing.\n\n## [1.2.2] - 2027-01-01\n\n- Another.\n',
  chart: 'version: 1.2.3\nappVersion: "1.2.3"\n',
  quarantined: [],
};

test('one whose tag, version, changelog and chart agree', () => {
  expect(releaseErrors('v1.2.3', GOOD)).toEqual([]);
  expect(changelogSection(GOOD.changelog, '1.2.3')).toBe('### Added\n\n- A thing.');
});

test.each<[what: string, tag: string, files: Partial<ReleaseFiles>, fault: RegExp]>([
  [
    'another tag',
    'v1.2.4',
    {},
    /^the tag is v1\.2\.4, and package\.json has version 1\.2\.3: tag v1\.2\.3, or run "npm version 1\.2\.4/,
  ],
  ['a tag without a v', '1.2.3', {}, /^the tag is 1\.2\.3/],
  [
    'another version in the lock file',
    'v1.2.3',
    { packageLock: '{"version": "1.2.2"}' },
    /^package-lock\.json has version 1\.2\.2/,
  ],
  [
    'another version of the chart itself',
    'v1.2.3',
    { chart: 'version: 1.2.2\nappVersion: 1.2.3\n' },
    /^deploy\/chart\/Chart\.yaml has version 1\.2\.2 and appVersion 1\.2\.3/,
  ],
  [
    'another version of what the chart installs',
    'v1.2.3',
    { chart: 'version: 1.2.3\nappVersion: 1.2.2\n' },
    /^deploy\/chart\/Chart\.yaml has version 1\.2\.3 and appVersion 1\.2\.2/,
  ],
  [
    'no section',
    'v1.2.3',
    { changelog: '## [Unreleased]\n\n- A thing.\n' },
    /^CHANGELOG\.md has no section "## \[1\.2\.3\] - YYYY-MM-DD"/,
  ],
  [
    'a section without a date',
    'v1.2.3',
    { changelog: '## [1.2.3]\n\n- A thing.\n' },
    /^CHANGELOG\.md has no section/,
  ],
  [
    'an empty section',
    'v1.2.3',
    { changelog: '## [1.2.3] - 2027-01-31\n\n## [1.2.2] - 2027-01-01\n\n- Another.\n' },
    /^CHANGELOG\.md: section \[1\.2\.3\]/,
  ],
  [
    'no repository',
    'v1.2.3',
    { packageJson: '{"version": "1.2.3"}' },
    /^package\.json has no "repository"/,
  ],
  [
    'a quarantined test',
    'v1.2.3',
    { quarantined: ['test/unit/x.test.ts'] },
    /^\.ci\/quarantine must be empty, got test\/unit\/x\.test\.ts/,
  ],
])('not one with %s', (_what, tag, files, fault) => {
  expect(releaseErrors(tag, { ...GOOD, ...files })).toEqual([expect.stringMatching(fault)]);
});

test('of what is here, version, lock file and chart agree at any time', () => {
  const faults = releaseErrors(`v${version}`, {
    ...REAL,
    packageJson: JSON.stringify({ version, repository: 'github:acme/holdfast' }),
    changelog: `## [${version}] - 2027-01-31\n\n- A thing.\n`,
  });
  expect(faults).toEqual([]);
});

test('histories are recorded only for a version that is not released', () => {
  const packageJson = '{"version": "1.2.3"}';
  expect(
    folderToRecord({ packageJson, changelog: '## [Unreleased]\n\n## [1.1.9] - 2027-01-31\n' }),
  ).toBe('v1.2');
  expect(() =>
    folderToRecord({ packageJson, changelog: '## [Unreleased]\n\n## [1.2.0] - 2027-01-31\n' }),
  ).toThrow(/^\[1\.2\.0\] - 2027-01-31 is released/);
});

describe('what the packages contain', () => {
  const FILES: Record<string, string> = {
    'holdfast/package.json': JSON.stringify({
      exports: { '.': './dist/worker/index.js', './internal/*': './dist/*' },
      dependencies: { zod: '1.0.0' },
    }),
    'holdfast/dist/worker/index.js': "import z from 'zod';\nawait import('./late.js');\n",
    'holdfast/dist/worker/late.js': "export * from 'node:fs';\n",
    'holdfast/dist/worker/codec/failureConverter.cjs': '',
    'holdfast/dist/activities/compute/process/wrapper.js': '',
    'holdfast/dist/workflow-bundle-1.24.0.js': "require('./not/a/file.js')",
    'holdfast/dist/workflow-bundle-1.24.0-encrypted.js': '',
    'holdfast/dist/workflows/tracing/interceptors.js': '',
    'holdfast/dist/supervisor/supervisor.mjs': '',
    'holdfast/README.md':
      'See [the page](docs/page.md#part), [this](#part), [that](https://example.com/x).',
    'holdfast/docs/page.md': '[Examples](../examples)',
    'holdfast/examples/one.yaml': '',
    'holdfast-cli/package.json': JSON.stringify({
      bin: { holdfast: './dist/cli/main.js' },
      dependencies: { holdfast: '1.0.0' },
    }),
    'holdfast-cli/dist/cli/main.js':
      "import { a } from 'holdfast/internal/worker/index.js';\nimport './other.js';\n",
    'holdfast-cli/dist/cli/other.js': '',
  };
  const errorsOf = (all: Record<string, string>): string[] => {
    const of = (name: string): PackedPackage => ({
      files: Object.keys(all).flatMap((path) =>
        path.startsWith(`${name}/`) ? [path.slice(name.length + 1)] : [],
      ),
      read: (path) => all[`${name}/${path}`] ?? '',
    });
    return packedErrors(of('holdfast'), of('holdfast-cli'));
  };

  test('is everything that they export, execute, import and read', () => {
    expect(errorsOf(FILES)).toEqual([]);
  });

  test.each(Object.keys(FILES).filter((path) => !/(package\.json|README\.md)$/.test(path)))(
    'is an error without %s',
    (path) => {
      const { [path]: _, ...others } = FILES;
      const errors = errorsOf(others);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors)
        expect(error).toMatch(/^the package holdfast(-cli)? lacks .+; add it in/);
    },
  );

  test('has every package that is imported among its dependencies', () => {
    const manifest = '{"bin": {"holdfast": "./dist/cli/main.js"}}';
    expect(errorsOf({ ...FILES, 'holdfast-cli/package.json': manifest })).toEqual([
      expect.stringMatching(/^the package holdfast-cli lacks the dependency holdfast;/),
    ]);
  });
});

interface Job {
  readonly permissions?: object;
  readonly needs?: string;
  readonly if?: string;
  readonly steps: readonly { run?: string; uses?: string }[];
}

describe('the workflow', () => {
  const { on, jobs } = parse(read('.github/workflows/release.yaml')) as {
    on: { push: { tags: string[] } };
    jobs: Record<'publish' | 'images', Job>;
  };
  const commands = jobs.publish.steps.flatMap(({ run }) => run ?? []);

  test('checks the tag before it publishes, with provenance', () => {
    expect(on.push.tags).toEqual(['v*']);
    expect(jobs.publish.permissions).toEqual({ contents: 'read', 'id-token': 'write' });
    expect(commands.indexOf('npm run release:check -- "$GITHUB_REF_NAME"')).toBeGreaterThan(-1);
    // The second package depends on the first.
    expect(commands.slice(-3)).toEqual([
      'npm run build:packages',
      'npm publish ./dist/packages/holdfast --provenance --access public',
      'npm publish ./dist/packages/holdfast-cli --provenance --access public',
    ]);
  });

  test('pushes images and chart after npm, and only where a repository for them is named', () => {
    expect(jobs.images).toMatchObject({ needs: 'publish', if: "vars.IMAGE_REPOSITORY != ''" });
    expect(jobs.images.steps.map(({ run = '' }) => run.split(' ')[0]).slice(-2)).toEqual([
      'tools/release/publishImages.sh',
      'tools/release/publishChart.sh',
    ]);
  });

  test('takes actions by their commit: a tag may be moved, and these may publish', () => {
    const used = Object.values(jobs).flatMap(({ steps }) =>
      steps.flatMap(({ uses }) => uses ?? []),
    );
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((uses) => !/^actions\/[\w-]+@[0-9a-f]{40}$/.test(uses))).toEqual([]);
  });

  test('names scripts that there are', () => {
    const { scripts } = JSON.parse(REAL.packageJson) as { scripts: Record<string, string> };
    expect(
      commands
        .flatMap((command) =>
          [...command.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name),
        )
        .filter((name) => scripts[name] === undefined),
    ).toEqual([]);
  });
});
