/** The two packages as npm would publish them: made by their own script, judged by the field's tools, installed in empty projects, and used there. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
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
  'cli',
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
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples',
  'tools/release',
  'tools/shared',
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

const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund'];

/** A project that has nothing but the plugin's package and, of each package of Temporal's SDK that it needs, this version. */
async function makeProject(folder: string, tarball: string, sdk: string): Promise<void> {
  await cp(join(PROJECT, 'test/support/foreignProject'), folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const page = await readFile(join(PROJECT, 'docs/plugin.md'), 'utf8');
  const [, names = ''] = /^npm install holdfast @temporalio\/\{(.+)\}@/m.exec(page) ?? [];
  const packages = names.split(',').map((name) => `@temporalio/${name}@${sdk}`);
  await run(folder, 'npm', ...INSTALL, tarball, ...packages);
}

/** Names of the packages that a project has. */
async function installed(project: string): Promise<string[]> {
  const { packages } = JSON.parse(
    await readFile(join(project, 'node_modules/.package-lock.json'), 'utf8'),
  ) as { packages: Record<string, object> };
  return Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, ''));
}

async function manifest(): Promise<{
  version: string;
  engines: { node: string };
  peerDependencies: Record<string, string>;
}> {
  return JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'));
}

/** The version of Temporal's SDK that the checkout has. */
async function lockedSdk(): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(PROJECT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string } | undefined>;
  };
  return packages['node_modules/@temporalio/worker']?.version ?? 'none';
}

/** The last line that a program printed, parsed. */
function lastLine({ stdout }: Ran): unknown {
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

const newQueue = (): string => `test-${randomUUID().slice(0, 8)}`;

await describeWithLab('the packages', { temporal: true }, (lab) => {
  let folder: string;
  let project: string;
  /** A project that has the command's package alone. */
  let commandProject: string;
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
    await run(source, 'npm', 'run', 'build:packages');
    const pack = async (name: string): Promise<{ filename: string; unpackedSize: number }> => {
      const options = ['--json', '--pack-destination', folder];
      const { stdout } = await run(source, 'npm', 'pack', `./dist/packages/${name}`, ...options);
      const [packed] = JSON.parse(stdout) as { filename: string; unpackedSize: number }[];
      return packed ?? { filename: 'none', unpackedSize: 0 };
    };
    const packed = await pack('holdfast');
    tarball = join(folder, packed.filename);
    unpackedSize = packed.unpackedSize;
    commandProject = join(folder, 'command');
    await mkdir(commandProject);
    await writeFile(join(commandProject, 'package.json'), JSON.stringify({ private: true }));
    const commandTarball = join(folder, (await pack('holdfast-cli')).filename);
    await run(commandProject, 'npm', ...INSTALL, tarball, commandTarball);
    project = join(folder, 'project');
    await makeProject(project, tarball, process.env['HOLDFAST_TEST_SDK'] ?? (await lockedSdk()));
  }, 240_000);
  afterAll(async () => await rm(folder, { recursive: true, force: true }));

  test('have valid manifests, by publint', async () => {
    for (const name of ['holdfast', 'holdfast-cli']) {
      const pkgDir = join(commandProject, 'node_modules', name);
      expect((await publint({ pkgDir, strict: true })).messages).toEqual([]);
    }
  });

  test('the plugin has few dependencies, and none for the command, S3 and tracing', async () => {
    const names = await installed(project);
    const unwanted = /^(fastify|pino|prom-client|holdfast-cli|@aws-sdk\/.*|@opentelemetry\/.*)$/;
    expect(names.filter((name) => unwanted.test(name))).toEqual([]);
    const { dependencies } = JSON.parse(
      await readFile(join(project, 'node_modules/holdfast/package.json'), 'utf8'),
    ) as { dependencies: object };
    expect(Object.keys(dependencies).length).toBeLessThanOrEqual(10);
  });

  test('a missing optional package is an error with its name, versions and setting', async () => {
    const options = [lab.temporal?.address ?? '', newQueue(), join(folder, 'state')];
    const messages = lastLine(await run(project, process.execPath, 'missing.mjs', ...options));
    expect(messages).toEqual([
      expect.stringMatching(
        /^tracing: package "@(opentelemetry|temporalio)\/[\w-]+" is not installed; run "npm install .+ \^1\.\d+\.\d+$/,
      ),
      expect.stringMatching(
        /^--store: package "@aws-sdk\/(client-s3|lib-storage)" is not installed; run "npm install .+ \^3\.\d+\.0$/,
      ),
      'acted',
    ]);
  });

  test('every entry point has types, by Are The Types Wrong', async () => {
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

  test('another project and the samples of docs/plugin.md compile with it, and use one copy of the Temporal SDK', async () => {
    const page = await readFile(join(PROJECT, 'docs/plugin.md'), 'utf8');
    const samples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
    expect(samples.length).toBeGreaterThan(0);
    // As an ES module and as a CommonJS one.
    for (const [index, code] of samples.entries())
      for (const extension of ['mts', 'cts'])
        await writeFile(join(project, `sample${index}.${extension}`), code);
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
        include: ['*.ts', '*.mts', '*.cts'],
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
    const names = await installed(project);
    expect(names.filter((name) => name === '@temporalio/worker')).toHaveLength(1);
  });

  test('its Worker runs its own workflows and a runner', async () => {
    const ran = await run(
      project,
      process.execPath,
      'main.ts',
      lab.temporal?.address ?? '',
      newQueue(),
      join(folder, 'state'),
    );
    expect(lastLine(ran)).toEqual({ greeted: 'hello you', outcome: 'succeeded' });
  });

  // Both take Holdfast's workflows from the package: the bundle that was made ahead.
  test.each(['imported.mjs', 'required.cjs'])(
    'a Worker without its own workflows runs a runner: %s',
    async (program) => await runOne(project, program),
  );

  /** Has a program of the project run one runner. */
  async function runOne(cwd: string, program: string, node = process.execPath): Promise<void> {
    const options = [lab.temporal?.address ?? '', newQueue(), join(folder, 'state')];
    expect(lastLine(await run(cwd, node, program, ...options))).toEqual({
      outcome: 'succeeded',
    });
  }

  test('with the oldest supported Temporal SDK both run a runner', async () => {
    const { peerDependencies } = await manifest();
    const ranges = new Set(Object.values(peerDependencies));
    expect([...ranges]).toEqual([expect.stringMatching(/^\^\d+\.\d+\.\d+$/)]);
    const lowest = [...ranges][0]?.slice(1) ?? '';
    const low = join(folder, 'low');
    await makeProject(low, tarball, lowest);
    const worker = join(low, 'node_modules/@temporalio/worker/package.json');
    expect(JSON.parse(await readFile(worker, 'utf8'))).toMatchObject({ version: lowest });
    await runOne(low, 'imported.mjs');
    await runOne(low, 'required.cjs');
  }, 240_000);

  test('on the oldest supported Node.js both run a runner', async () => {
    const { engines } = await manifest();
    const floor = join(folder, 'floor');
    await mkdir(floor);
    // Its script brings the binary for this machine.
    const settings = { private: true, allowScripts: { node: true } };
    await writeFile(join(floor, 'package.json'), JSON.stringify(settings));
    const version = engines.node.replace('>=', '');
    await run(floor, 'npm', 'install', '--prefer-offline', '--no-audit', `node@~${version}.0`);
    const node = join(floor, 'node_modules/node/bin/node');
    expect((await run(floor, node, '--version')).stdout).toMatch(`v${version}.`);
    await runOne(project, 'imported.mjs', node);
    await runOne(project, 'required.cjs', node);
  }, 240_000);

  test('the worker command, and the command of the other package, run a command', async () => {
    const env = {
      ...process.env,
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: newQueue(),
      HOLDFAST_COMPUTE: 'process',
      HOLDFAST_ALLOW_ANY_COMMAND: 'true',
      HOLDFAST_STATE_DIR: join(folder, 'workerState'),
      HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
      HOLDFAST_CREDENTIALS: JSON.stringify({ default: { type: 'pat', tokenEnv: 'TOKEN' } }),
      TOKEN: 'unused',
    };
    const command = join(commandProject, 'node_modules/.bin/holdfast');
    const worker = spawn(command, ['worker'], { cwd: commandProject, env, stdio: 'ignore' });
    const ended = once(worker, 'exit');
    try {
      const { stdout } = await promisify(execFile)(command, ['run', '--json', '--', 'true'], {
        cwd: commandProject,
        env,
        timeout: 60_000,
      });
      expect(JSON.parse(stdout)).toMatchObject({ outcome: 'succeeded' });
    } finally {
      worker.kill('SIGTERM');
    }
    expect(await ended).toEqual([143, null]);
  });

  test('the command and the schemas for editors are included', async () => {
    const { version } = await manifest();
    expect(
      (await run(commandProject, 'npx', '--no-install', 'holdfast', '--version')).stdout.trim(),
    ).toBe(version);
    const { stdout: help } = await run(
      commandProject,
      'npx',
      '--no-install',
      'holdfast-cli',
      '--help',
    );
    expect(help).toMatch(/^ {2}doctor /m);
    expect(help).not.toMatch(/^ {2}demo /m);
    expect(
      JSON.parse(
        await readFile(join(project, 'node_modules/holdfast/schemas/sets.schema.json'), 'utf8'),
      ),
    ).toMatchObject({ title: 'Runner sets (Holdfast)' });
  });

  test('has no source maps, whose sources are not included, and is small', async () => {
    const paths = (
      await Promise.all(
        ['holdfast', 'holdfast-cli'].map(
          async (name) =>
            await readdir(join(commandProject, 'node_modules', name), { recursive: true }),
        ),
      )
    ).flat();
    expect(paths.filter((path) => path.endsWith('.map'))).toEqual([]);
    expect(unpackedSize).toBeLessThan(12_000_000);
  });
});
