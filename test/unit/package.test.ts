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
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OPTIONAL_PACKAGES } from '../../activities/shared/optionalPackages.ts';
import { COMMAND, PLUGIN } from '../../tools/release/packages.ts';
import { writePackages } from '../../tools/release/writePackages.ts';
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

/** The path in the lock file at which Node would resolve `name` from the package at `path`. */
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

  test('names no registry, so that the configured one is used', () => {
    expect(
      Object.entries(packages)
        .filter(([, { resolved }]) => resolved !== undefined)
        .map(([path]) => path),
    ).toEqual([]);
  });

  test('has the version and the direct dependencies of package.json', () => {
    expect(packages['']?.version).toBe(manifest.version);
    for (const [name, version] of Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
    })) {
      expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
  });

  test('only the package with the pinned Node may run its install script', () => {
    expect(manifest.devDependencies['node']).toMatch(/^\d+\.\d+\.\d+$/);
    expect(manifest.allowScripts['node']).toBe(true);
  });
});

describe('the packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-packages-'));
  const project = join(folder, 'project');

  /** Writes a checkout with the outputs of current and earlier builds, and builds the packages from it. */
  beforeAll(async () => {
    const files: Record<string, string> = {
      'core/a.js': "import { z } from 'zod';\n",
      'core/a.d.ts': '',
      'core/a.js.map': '',
      'workflows/a.js': '',
      'activities/a.js': "import { S3Client } from '@aws-sdk/client-s3';\n",
      'worker/index.js': "import { Worker } from '@temporalio/worker';\nimport './plugin/a.js';\n",
      'worker/index.d.ts': "export type { T } from './types.js';\n",
      'worker/types.js': '',
      'worker/codec/failureConverter.cjs': '',
      'worker/plugin/a.js': "const late = await import('./late.js');\n",
      'worker/plugin/late.js': '',
      'worker/process/run.js':
        "import '../../core/a.js';\nimport fastify from 'fastify';\nawait import('../plugin/late.js');\n//# sourceMappingURL=run.js.map\n",
      'worker/process/run.d.ts': '',
      'cli/main.js': "import { run } from '../worker/process/run.js';\n",
      'sbom.cdx.json': '',
      'workflow-bundle-1.0.0.js': '',
      'workflow-bundle-1.0.0-encrypted.js': '',
      ...Object.fromEntries(
        ['supervisor.mjs', 'tini', 'node', 'lib/libc.so.6'].map((name) => [
          `supervisor/${name}`,
          '',
        ]),
      ),
      ...Object.fromEntries(
        ['demo/main.js', 'tools/lab/lab.js', 'test/a.js'].map((name) => [name, '']),
      ),
    };
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(project, 'dist', path)), { recursive: true });
      writeFileSync(join(project, 'dist', path), text);
    }
    const copied = [PLUGIN, COMMAND].flatMap((each) =>
      each.files.map((file) => (typeof file === 'string' ? file : file.from)),
    );
    for (const path of new Set([...copied, 'package.json', 'package-lock.json']))
      if (!path.startsWith('dist/'))
        cpSync(join(PROJECT, path), join(project, path), { recursive: true });
    await writePackages(project, join(folder, 'packages'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** The paths that npm would publish for a package. */
  function packed(name: string): string[] {
    const [answer] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: join(folder, 'packages', name),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as { files: { path: string }[] }[];
    return answer?.files.map(({ path }) => path).toSorted() ?? [];
  }
  const read = (path: string): string => readFileSync(join(folder, 'packages', path), 'utf8');

  test('the plugin has the imports of its entry points, deployment files and docs, and no lab, demo, tests or binaries', () => {
    const files = packed('holdfast');
    expect(files.filter((path) => path.startsWith('dist/'))).toEqual([
      'dist/activities/a.js',
      'dist/core/a.d.ts',
      'dist/core/a.js',
      'dist/supervisor/supervisor.mjs',
      'dist/worker/codec/failureConverter.cjs',
      'dist/worker/index.d.ts',
      'dist/worker/index.js',
      'dist/worker/plugin/a.js',
      'dist/worker/plugin/late.js',
      'dist/worker/types.js',
      'dist/workflow-bundle-1.0.0-encrypted.js',
      'dist/workflow-bundle-1.0.0.js',
      'dist/workflows/a.js',
    ]);
    const others = files.filter((path) => !path.startsWith('dist/'));
    expect(
      others.filter(
        (path) =>
          !/^(CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|examples\/.+|LICENSE|README\.md|package\.json|docs\/.+|deploy\/.+\.(yaml|sh|Dockerfile)|deploy\/chart\/files\/admission-policy\.json|deploy\/(chart\/files\/)?grafana\/[^/]+\.json|schemas\/[a-z-]+\.schema\.json|deploy\/chart\/(\.helmignore|values\.schema\.json|templates\/[^/]+\.(tpl|txt)))$/.test(
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

  test('the command has all other code, and imports the files of the plugin from its package', () => {
    expect(packed('holdfast-cli')).toEqual([
      'LICENSE',
      'README.md',
      'dist/cli/main.js',
      'dist/sbom.cdx.json',
      'dist/worker/process/run.js',
      'package.json',
    ]);
    expect(read('holdfast-cli/dist/worker/process/run.js')).toBe(
      "import 'holdfast/internal/core/a.js';\nimport fastify from 'fastify';\nawait import('holdfast/internal/worker/plugin/late.js');\n",
    );
    expect(read('holdfast-cli/dist/cli/main.js')).toBe(
      "import { run } from '../worker/process/run.js';\n",
    );
  });

  test('they depend on what they import; S3 and tracing are optional for the plugin', () => {
    const { dependencies, peerDependencies } = json('package.json') as {
      dependencies: Record<string, string>;
      peerDependencies: Record<string, string>;
    };
    const plugin = JSON.parse(read('holdfast/package.json')) as Record<string, object>;
    expect(plugin['dependencies']).toEqual({ zod: dependencies['zod'] });
    expect(plugin['peerDependencies']).toEqual({
      ...OPTIONAL_PACKAGES,
      '@temporalio/worker': peerDependencies['@temporalio/worker'],
    });
    expect(plugin['peerDependenciesMeta']).toEqual(
      Object.fromEntries(Object.keys(OPTIONAL_PACKAGES).map((name) => [name, { optional: true }])),
    );
    // The tested version has the major version that users may have.
    for (const [name, range] of Object.entries(OPTIONAL_PACKAGES))
      expect(range.split('.')[0]).toBe(
        (peerDependencies[name] ?? `^${dependencies[name]}`).split('.')[0],
      );
    const command = JSON.parse(read('holdfast-cli/package.json')) as Record<string, object>;
    expect(command['dependencies']).toMatchObject({
      holdfast: manifest.version,
      fastify: dependencies['fastify'],
      '@aws-sdk/client-s3': dependencies['@aws-sdk/client-s3'],
      '@temporalio/worker': '>=1.22.0 <=1.24.0',
    });
  });

  test('all files that they export or run are compiled', () => {
    const { include } = json('tsconfig.build.json') as { include: string[] };
    for (const path of [
      ...Object.values(COMMAND.bin ?? {}),
      ...Object.values(PLUGIN.exports ?? {}).filter((target) => !target.includes('*')),
    ]) {
      expect(include).toContain(path.split('/')[2]);
      expect(existsSync(join(PROJECT, path.replace('./dist/', '').replace(/\.js$/, '.ts')))).toBe(
        true,
      );
    }
  });
});
