/** The package as npm would publish it: made by its own scripts, judged by the field's tools, installed in an empty project, and used there. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { publint } from 'publint';
import { describeWithLab } from '../support/lab.ts';
import { PROJECT } from '../support/markdown.ts';

/** What the package is made of and by. */
const SOURCES = [
  'core',
  'workflows',
  'activities',
  'worker',
  'supervisor',
  'uploader',
  'deploy',
  'docs',
  'schemas',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  '.npmrc',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
];

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

async function run(cwd: string, program: string, ...args: string[]): Promise<Ran> {
  try {
    return await promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stdout, stderr } = error as Ran;
    throw new Error(
      `${program} ${args.join(' ')}: ${(error as Error).message}\n${stdout}${stderr}`,
      { cause: error },
    );
  }
}

await describeWithLab('the package', { temporal: true }, (lab) => {
  let folder: string;
  let project: string;
  let tarball: string;
  let unpackedSize: number;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-packed-'));
    const source = join(folder, 'source');
    // A copy: other tests compile in the checkout.
    await mkdir(source);
    for (const path of SOURCES)
      await cp(join(PROJECT, path), join(source, path), { recursive: true });
    await symlink(join(PROJECT, 'node_modules'), join(source, 'node_modules'));
    const [packed] = JSON.parse(
      (
        await run(source, 'npm', 'pack', '--json', '--silent', '--pack-destination', folder)
      ).stdout.replace(/^[^]*?(?=^\[$)/m, ''),
    ) as { filename: string; unpackedSize: number }[];
    tarball = join(folder, packed?.filename ?? 'none');
    unpackedSize = packed?.unpackedSize ?? 0;
    project = join(folder, 'project');
    await cp(join(PROJECT, 'test/support/foreignProject'), project, { recursive: true });
    await writeFile(
      join(project, 'package.json'),
      JSON.stringify({ private: true, type: 'module' }),
    );
    await run(project, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball);
  }, 240_000);
  afterAll(async () => await rm(folder, { recursive: true, force: true }));

  test('nothing is wrong with its manifest, by publint', async () => {
    const { messages } = await publint({
      pkgDir: join(project, 'node_modules/holdfast'),
      strict: true,
    });
    expect(messages).toEqual([]);
  });

  test('every entry point has its types, by Are The Types Wrong', async () => {
    const { stdout } = await run(
      folder,
      join(PROJECT, 'node_modules/.bin/attw'),
      tarball,
      '--profile',
      'esm-only',
      '--format',
      'json',
    );
    const { analysis, problems = {} } = JSON.parse(stdout) as {
      analysis: { entrypoints: Record<string, unknown> };
      problems?: Record<string, { resolutionKind: string }[]>;
    };
    expect(Object.keys(analysis.entrypoints)).toEqual(
      expect.arrayContaining(['.', './workflows', './contract']),
    );
    // The others are for CommonJS, which it is not.
    expect(
      Object.values(problems)
        .flat()
        .filter(
          ({ resolutionKind }) => resolutionKind === 'node16-esm' || resolutionKind === 'bundler',
        ),
    ).toEqual([]);
  });

  test('a project of somebody else compiles with it, and sees one copy of the Temporal SDK', async () => {
    await writeFile(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          target: 'es2023',
          module: 'nodenext',
          strict: true,
          noEmit: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
          types: ['node'],
          typeRoots: [join(PROJECT, 'node_modules/@types')],
        },
        include: ['*.ts'],
      }),
    );
    await run(
      project,
      process.execPath,
      join(PROJECT, 'node_modules/typescript/bin/tsc'),
      '-p',
      '.',
    );
    expect(
      (await readdir(join(project, 'node_modules'))).filter((name) => name === 'typescript'),
    ).toEqual([]);
    const { packages } = JSON.parse(
      await readFile(join(project, 'node_modules/.package-lock.json'), 'utf8'),
    ) as { packages: Record<string, object> };
    expect(
      Object.keys(packages).filter((path) => path.endsWith('node_modules/@temporalio/worker')),
    ).toEqual(['node_modules/@temporalio/worker']);
  });

  test('its Worker runs workflows of its own, and a runner', async () => {
    const taskQueue = `test-${randomUUID().slice(0, 8)}`;
    const { stdout } = await run(
      project,
      process.execPath,
      'main.ts',
      lab.temporal?.address ?? '',
      taskQueue,
      join(folder, 'state'),
    );
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual({
      greeted: 'hello you',
      outcome: 'succeeded',
    });
  });

  test('the command is there, and the schemas for editors', async () => {
    const { version } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect((await run(project, 'npx', '--no-install', 'holdfast', '--version')).stdout.trim()).toBe(
      version,
    );
    expect(
      JSON.parse(
        await readFile(join(project, 'node_modules/holdfast/schemas/sets.schema.json'), 'utf8'),
      ),
    ).toMatchObject({ title: 'Runner sets (Holdfast)' });
  });

  test('has no source map, whose sources are not in it, and is no larger than it has to be', async () => {
    const paths = await readdir(join(project, 'node_modules/holdfast'), { recursive: true });
    expect(paths.filter((path) => path.endsWith('.map'))).toEqual([]);
    expect(unpackedSize).toBeLessThan(12_000_000);
  });
});
