import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

interface LockEntry {
  version?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const json = (path: string): unknown => JSON.parse(readFileSync(join(PROJECT, path), 'utf8'));
const { packages } = json('package-lock.json') as { packages: Record<string, LockEntry> };
const manifest = json('package.json') as {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  allowScripts: Record<string, boolean>;
};

/** Where Node would find `name` from the package at `path`, among what the lock file has. */
function found(path: string, name: string): boolean {
  for (
    let at = path;
    ;
    at = at.includes('/node_modules/') ? at.slice(0, at.lastIndexOf('/node_modules/')) : ''
  ) {
    if (packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`] !== undefined) return true;
    if (at === '') return false;
  }
}

describe('package-lock.json', () => {
  test('has the optional packages of every platform, or npm ci refuses to install on any', () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !found(path, name)),
    );
    expect(missing).toEqual([]);
  });

  test('names no registry: the one that is configured is asked', () => {
    expect(
      Object.entries(packages)
        .filter(([, { resolved }]) => resolved !== undefined)
        .map(([path]) => path),
    ).toEqual([]);
  });

  test('is of this version, and has the direct dependencies as they are asked for', () => {
    expect(packages['']?.version).toBe(manifest.version);
    for (const [name, version] of Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
    })) {
      expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
  });

  test('the one package whose install script is needed may run it: it brings the pinned Node', () => {
    expect(manifest.devDependencies['node']).toMatch(/^\d+\.\d+\.\d+$/);
    expect(manifest.allowScripts['node']).toBe(true);
  });
});

describe('the package', () => {
  /** What npm would publish of a folder with what a build leaves, today or of old, and with the sources. */
  function packed(): string[] {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
    try {
      const { include } = json('tsconfig.build.json') as { include: string[] };
      const built = [
        ...include.flatMap((each) => [`dist/${each}/a.js`, `dist/${each}/a.js.map`]),
        ...['supervisor.mjs', 'tini', 'node', 'ld.so', 'lib/libc.so.6', 'main.js'].map(
          (name) => `dist/supervisor/${name}`,
        ),
        'dist/sbom.cdx.json',
        'dist/workflow-bundle-1.0.0.js',
        'dist/workflow-bundle-1.0.0-encrypted.js',
      ];
      const others = [
        'dist/demo/main.js',
        'dist/tools/lab/lab.js',
        'dist/tools/simulator/main.js',
        'dist/test/a.js',
        'demo/main.ts',
        'tools/lab/lab.ts',
        'test/a.test.ts',
        '.ci/run',
        'core/a.ts',
      ];
      for (const path of [...built, ...others]) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), '');
      }
      for (const real of [
        'package.json',
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'CONTRIBUTING.md',
        'SECURITY.md',
        'deploy',
        'docs',
        'examples',
        'schemas',
      ])
        cpSync(join(PROJECT, real), join(folder, real), { recursive: true });
      const [answer] = JSON.parse(
        execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
          cwd: folder,
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        }),
      ) as { files: { path: string }[] }[];
      return answer?.files.map(({ path }) => path) ?? [];
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('is what runs, what deploys it and what explains it: no lab, no demo, no simulator, no test, no binary', () => {
    const files = packed();
    const code = files.filter((path) => path.startsWith('dist/')).toSorted();
    expect(code).toEqual([
      'dist/activities/a.js',
      'dist/cli/a.js',
      'dist/core/a.js',
      'dist/sbom.cdx.json',
      'dist/supervisor/supervisor.mjs',
      'dist/worker/a.js',
      'dist/workflow-bundle-1.0.0-encrypted.js',
      'dist/workflow-bundle-1.0.0.js',
      'dist/workflows/a.js',
    ]);
    const others = files.filter((path) => !path.startsWith('dist/'));
    expect(
      others.filter(
        (path) =>
          !/^(CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|examples\/.+|LICENSE|README\.md|package\.json|docs\/.+|deploy\/.+\.(yaml|sh|Dockerfile)|deploy\/(chart\/files\/)?grafana\/[^/]+\.json|schemas\/[a-z-]+\.schema\.json|deploy\/chart\/(\.helmignore|values\.schema\.json|templates\/[^/]+\.(tpl|txt)))$/.test(
            path,
          ),
      ),
    ).toEqual([]);
    expect(others).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'deploy/rbac.yaml',
        'deploy/chart/Chart.yaml',
        'docs/licenses.md',
        'schemas/sets.schema.json',
      ]),
    );
  });

  test('whatever it exports or runs is in it', () => {
    const { bin, exports } = json('package.json') as {
      bin: Record<string, string>;
      exports: Record<string, string>;
    };
    const { include } = json('tsconfig.build.json') as { include: string[] };
    expect(exports['./schemas/*']).toBe('./schemas/*');
    for (const path of [
      ...Object.values(bin),
      ...Object.values(exports).filter((target) => !target.includes('*')),
    ]) {
      expect(include).toContain(path.split('/')[2]);
      expect(existsSync(join(PROJECT, path.replace('./dist/', '').replace(/\.js$/, '.ts')))).toBe(
        true,
      );
    }
  });
});
