import { execFile, spawn } from 'node:child_process';
import { cp, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { BinarySpec, GoBuild } from './versions.ts';

const REPORT_EVERY_MS = 15_000;

/** Folder with the files that a built binary reads. It exists only for binaries that read files. */
export const filesFolder = (binary: string): string => `${binary}-files`;

/**
 * Builds a binary from Go modules (through the module proxy) to `target`, atomically. Takes minutes
 * the first time.
 * @throws Error if Go is missing, or with the end of the compiler's output
 */
export async function buildFromGo(
  spec: BinarySpec,
  target: string,
  progress: (line: string) => void,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (spec.go === undefined)
    throw new Error(`${spec.name} is no Go program that we know how to build`);
  const work = await mkdtemp(join(tmpdir(), 'holdfast-build-'));
  // On the target's file system, so that the rename is atomic.
  const out = await mkdtemp(join(dirname(target), '.build-'));
  const goEnv = {
    ...env,
    CGO_ENABLED: '0',
    // Distributions' packages and the official archive put it here without changing PATH.
    PATH: [env['PATH'] ?? '', '/usr/local/go/bin'].join(delimiter),
  };
  try {
    if (spec.go.kind === 'install') {
      await go(
        spec,
        ['install', `${spec.go.package}@v${spec.version}`],
        work,
        { ...goEnv, GOFLAGS: '', GOBIN: out },
        progress,
      );
    } else {
      const { goMod, main, files = [], cgo } = spec.go;
      await writeFile(join(work, 'go.mod'), goMod);
      if (main !== undefined) await writeFile(join(work, 'main.go'), main);
      const moduleEnv = {
        ...goEnv,
        GOFLAGS: '-mod=mod',
        ...(cgo === true && { CGO_ENABLED: '1' }),
      };
      const args = buildArguments(spec.go, join(out, spec.name));
      await go(spec, args, work, moduleEnv, progress);
      for (const folder of files) {
        const at = join(await moduleFolder(spec.go.package, work, moduleEnv), folder);
        await cp(at, join(filesFolder(target), folder), { recursive: true });
      }
    }
    await rename(join(out, spec.name), target);
  } finally {
    await rm(work, { recursive: true, force: true });
    await rm(out, { recursive: true, force: true });
  }
}

function buildArguments(
  { ldflags, tags, package: name }: GoBuild & { kind: 'module' },
  out: string,
): string[] {
  return ['build', '-ldflags', ldflags, ...(tags === undefined ? [] : ['-tags', tags]), '-o', out, name]; // prettier-ignore
}

/** Where Go keeps the module of a package. */
async function moduleFolder(name: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['list', '-f', '{{.Module.Dir}}', name];
  return (await promisify(execFile)('go', args, { cwd, env })).stdout.trim();
}

function go(
  spec: BinarySpec,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<void> {
  const started = performance.now();
  progress(`${spec.name} ${spec.version}: building from Go modules (some minutes, once)`);
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-4_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const seconds = (): number => Math.round((performance.now() - started) / 1000);
    const report = setInterval(
      () => progress(`${spec.name}: still building, ${seconds()} s`),
      REPORT_EVERY_MS,
    );
    child.once('error', (error: NodeJS.ErrnoException) => {
      clearInterval(report);
      reject(error.code === 'ENOENT' ? new Error('Go is not installed') : error);
    });
    child.once('close', (code) => {
      clearInterval(report);
      if (code !== 0) {
        reject(
          new Error(
            `go ${args[0]} failed (${code}):\n${output.trimEnd().split('\n').slice(-8).join('\n')}`,
          ),
        );
        return;
      }
      progress(`${spec.name}: built in ${seconds()} s`);
      resolve();
    });
  });
}
