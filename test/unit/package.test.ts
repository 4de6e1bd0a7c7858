import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

interface LockEntry {
  version?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const json = (path: string): unknown => JSON.parse(readFileSync(join(PROJECT, path), 'utf8'));
const { packages } = json('package-lock.json') as { packages: Record<string, LockEntry> };
const manifest = json('package.json') as { version: string; dependencies: Record<string, string>; devDependencies: Record<string, string>; allowScripts: Record<string, boolean> };

/** Where Node would find `name` from the package at `path`, among what the lock file has. */
function found(path: string, name: string): boolean {
  for (let at = path; ; at = at.includes('/node_modules/') ? at.slice(0, at.lastIndexOf('/node_modules/')) : '') {
    if (packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`] !== undefined) return true;
    if (at === '') return false;
  }
}

describe('package-lock.json', () => {
  test('has the optional packages of every platform, or npm ci refuses to install on any', () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) => Object.keys(optionalDependencies).filter((name) => !found(path, name)));
    expect(missing).toEqual([]);
  });

  test('names no registry: the one that is configured is asked', () => {
    expect(Object.entries(packages).filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  });

  test('is of this version, and has the direct dependencies as they are asked for', () => {
    expect(packages['']?.version).toBe(manifest.version);
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
  });

  test('the one package whose install script is needed may run it: it brings the pinned Node', () => {
    expect(manifest.devDependencies['node']).toMatch(/^\d+\.\d+\.\d+$/);
    expect(manifest.allowScripts['node']).toBe(true);
  });
});

test('the supervisor is published, but none of the binaries of its folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
  try {
    cpSync(join(PROJECT, 'package.json'), join(folder, 'package.json'));
    mkdirSync(join(folder, 'dist/supervisor/lib'), { recursive: true });
    for (const name of ['supervisor.mjs', 'tini', 'node', 'ld.so', 'lib/libc.so.6']) writeFileSync(join(folder, 'dist/supervisor', name), '');
    const [packed] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })) as { files: { path: string }[] }[];
    expect(packed?.files.map(({ path }) => path)).toEqual(['dist/supervisor/supervisor.mjs', 'package.json']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
