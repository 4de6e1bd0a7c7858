import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { advisoriesOf, isSevere, SNAPSHOT, type AdvisorySnapshot } from './advisories.ts';
import { isAllowed, licenseOf, licensePage } from './licenses.ts';
import { lockedPackages, productionPackages } from './lockFile.ts';
import { COMMAND } from '../release/packages.ts';
import { PROJECT } from '../../test/support/markdown.ts';

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');

/**
 * Binaries of platforms that neither CI nor an image uses. The lock file has no hashes of them,
 * because the registry had no archives. Remove the lines of a version together with it, and add
 * none.
 */
const WITHOUT_ARCHIVE =
  /^(@oxlint\/binding-|@oxlint-tsgolint\/|@unrs\/resolver-binding-|@swc\/core-)/;
const OURS = ['linux-x64-gnu', 'linux-arm64-gnu', 'linux-x64', 'linux-arm64'];

describe('package-lock.json', () => {
  const without = lockedPackages().filter(({ integrity }) => integrity === undefined);

  test('every package that can be installed where Holdfast is built, tested or run has the hash of its archive', () => {
    const others = without.filter(
      ({ name, optional, os, cpu }) =>
        !(
          WITHOUT_ARCHIVE.test(name) &&
          optional === true &&
          os !== undefined &&
          cpu !== undefined &&
          !OURS.some((platform) => name.endsWith(platform))
        ),
    );
    expect(others.map(({ path }) => path)).toEqual([]);
  });

  test('packages without a hash do not become more', () => {
    expect(without.length).toBeLessThanOrEqual(46);
  });

  test('every hash is SHA-512', () => {
    expect(
      lockedPackages()
        .filter(
          ({ integrity }) => integrity !== undefined && !/^sha512-[\w+/]{86}==$/.test(integrity),
        )
        .map(({ path }) => path),
    ).toEqual([]);
  });

  test('npm leaves the registry out of it on every machine', () => {
    expect(read('.npmrc')).toMatch(/^omit-lockfile-registry-resolved=true$/m);
    expect(read('package-lock.json')).not.toMatch(
      /https?:\/\/(?!registry\.npmjs\.org\/)[^"]*\.tgz/,
    );
  });
});

describe('website/package-lock.json, of which nothing is published but pages', () => {
  const packages = lockedPackages('website/package-lock.json');
  const { devDependencies, overrides } = JSON.parse(read('website/package.json')) as {
    devDependencies: Record<string, string>;
    overrides: Record<string, string>;
  };

  test('has each direct dependency as it is asked for, exactly', () => {
    for (const [name, version] of Object.entries({ ...devDependencies, ...overrides }))
      expect(
        packages.filter((each) => each.path === `node_modules/${name}`).map((each) => each.version),
      ).toEqual([version]);
  });

  test('has the hash of every archive, but of binaries for platforms that CI does not run on', () => {
    const without = packages.filter(({ integrity }) => integrity === undefined);
    expect(
      without
        .filter(
          ({ name, optional, os }) =>
            !(
              name.startsWith('@rollup/rollup-') &&
              optional === true &&
              os !== undefined &&
              !OURS.some((platform) => name.endsWith(platform))
            ),
        )
        .map(({ path }) => path),
    ).toEqual([]);
    expect(
      packages.filter(({ resolved }) => resolved !== undefined).map(({ path }) => path),
    ).toEqual([]);
  });

  test('is for the development alone: nothing of it runs with Holdfast', () => {
    expect(
      packages
        .filter(({ dev, optional }) => dev !== true && optional !== true)
        .map(({ path }) => path),
    ).toEqual([]);
  });
});

describe('advisories', () => {
  const snapshot: AdvisorySnapshot = {
    date: '2026-01-01',
    source: '',
    advisories: [
      {
        id: 'CVE-1',
        package: 'a',
        severity: 'high',
        vulnerable: [{ before: '1.2.3' }, { from: '2.0.0', before: '2.10.0' }],
      },
    ],
  };

  test.each([
    ['1.2.2', true],
    ['1.2.3', false],
    ['1.10.0', false],
    ['2.0.0', true],
    ['2.9.9', true],
    ['2.10.0', false],
    ['2.0.0-rc.1', true],
  ])('%s is vulnerable: %s', (version, expected) => {
    expect(advisoriesOf({ name: 'a', version }, snapshot).length > 0).toBe(expected);
    expect(advisoriesOf({ name: 'b', version }, snapshot)).toEqual([]);
  });

  test('none of the snapshot that is severe holds for what runs in production', () => {
    expect(
      productionPackages().flatMap((each) =>
        advisoriesOf(each, SNAPSHOT)
          .filter(({ severity }) => isSevere(severity))
          .map(({ id }) => `${each.name} ${each.version}: ${id}`),
      ),
    ).toEqual([]);
  });

  test('the snapshot is about packages that are here, and tells its date', () => {
    expect(SNAPSHOT.date).toMatch(/^20\d\d-\d\d-\d\d$/);
    const names = new Set(productionPackages().map(({ name }) => name));
    expect(
      SNAPSHOT.advisories.map((each) => each.package).filter((name) => !names.has(name)),
    ).toEqual([]);
  });

  test('CI asks for them', () =>
    expect(read('.ci/run')).toMatch(/^start_check '\w+' npm run audit$/m));
});

describe('licenses', () => {
  test.each([
    ['MIT', true],
    ['(MIT OR Apache-2.0)', true],
    ['Apache-2.0 AND MIT', true],
    ['MIT OR GPL-3.0-only', false],
    ['GPL-3.0-only', false],
    ['none', false],
  ])('%s may be: %s', (license, expected) => expect(isAllowed(license)).toBe(expected));

  test('of all that runs in production may be', () => {
    expect(
      productionPackages()
        .filter((each) => !isAllowed(licenseOf(each)))
        .map((each) => `${each.name}: ${licenseOf(each)}`),
    ).toEqual([]);
  });

  test('docs/licenses.md names them all: npm run licenses', () =>
    expect(read('docs/licenses.md')).toBe(licensePage(productionPackages())));
});

describe('SBOM', () => {
  interface Sbom {
    bomFormat: string;
    metadata: { component: { name: string; version: string } };
    components: { name: string; version: string; hashes?: object[] }[];
  }

  test('has every production package with its hash, nothing of the tests, and is the same for the same lock file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-sbom-'));
    try {
      const made = ['a.json', 'b.json'].map((name) => {
        execFileSync(process.execPath, ['deploy/images/buildSbom.ts', join(folder, name)], {
          cwd: PROJECT,
          stdio: 'pipe',
        });
        return readFileSync(join(folder, name), 'utf8');
      });
      expect(made[0]).toBe(made[1]);
      const sbom = JSON.parse(made[0] ?? '') as Sbom;
      const { version } = JSON.parse(read('package.json')) as { version: string };
      expect(sbom).toMatchObject({
        bomFormat: 'CycloneDX',
        metadata: { component: { name: 'holdfast', version } },
      });
      const expected = new Set(productionPackages().map((each) => `${each.name}@${each.version}`));
      expect(new Set(sbom.components.map((each) => `${each.name}@${each.version}`))).toEqual(
        expected,
      );
      const hashed = new Set(
        productionPackages()
          .filter(({ integrity }) => integrity !== undefined)
          .map((each) => `${each.name}@${each.version}`),
      );
      expect(
        sbom.components.filter(
          (each) => hashed.has(`${each.name}@${each.version}`) && each.hashes === undefined,
        ),
      ).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('is made by every build, so that it is in the package and in the image of the worker', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(scripts['build']).toMatch(/npm run build:sbom$/);
    expect(scripts['build:packages']).toMatch(/^npm run build && /);
    expect(COMMAND.files).toContain('dist/sbom.cdx.json');
    expect(read('deploy/images/worker.Dockerfile')).toMatch(
      /^RUN npm run build && [^]*^COPY --from=build \/app\/dist dist$/m,
    );
  });
});

describe('renovate.json', () => {
  interface Rules {
    extends: string[];
    kubernetes: { managerFilePatterns: string[] };
    customManagers: { managerFilePatterns: string[]; matchStrings: string[] }[];
  }
  const rules = JSON.parse(read('renovate.json')) as Rules;
  const matches = (patterns: readonly string[], path: string): boolean =>
    patterns.some((pattern) => new RegExp(pattern.slice(1, -1)).test(path));

  test('pins digests, and waits for a new release to be known', () => {
    expect(rules.extends).toEqual(
      expect.arrayContaining(['config:recommended', 'docker:pinDigests']),
    );
    expect(rules).toMatchObject({
      minimumReleaseAge: expect.stringMatching(/^\d+ days$/) as unknown,
      rangeStrategy: 'pin',
    });
  });

  test("finds the images of manifests, and the runner's in the source", () => {
    expect(matches(rules.kubernetes.managerFilePatterns, 'deploy/sweep.yaml')).toBe(true);
    const [runner] = rules.customManagers;
    expect(matches(runner?.managerFilePatterns ?? [], 'core/domain/runnerKinds/gitHub.ts')).toBe(
      true,
    );
    const found = new RegExp(runner?.matchStrings[0] ?? '').exec(
      read('core/domain/runnerKinds/gitHub.ts'),
    )?.groups;
    expect(found).toMatchObject({
      depName: 'ghcr.io/actions/actions-runner',
      currentValue: expect.stringMatching(/^\d+\.\d+\.\d+$/) as unknown,
    });
  });
});
