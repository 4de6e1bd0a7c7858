import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { BinarySpec } from './versions.ts';

/**
 * Builds a binary from a crate of crates.io to `target`, atomically. Takes minutes.
 * @throws Error with the end of the compiler's output; or that Rust is missing
 */
export async function buildFromCrate(
  spec: BinarySpec,
  target: string,
  progress: (line: string) => void,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (spec.crate === undefined)
    throw new Error(`${spec.name} is no Rust program that we know how to build`);
  const { name, features } = spec.crate;
  const work = await mkdtemp(join(tmpdir(), 'holdfast-build-'));
  // On the target's file system, so that the rename is atomic.
  const out = await mkdtemp(join(dirname(target), '.build-'));
  progress(`${spec.name} ${spec.version}: building from the crate ${name} (some minutes, once)`);
  try {
    await promisify(execFile)(
      'cargo',
      ['install', name, '--version', spec.version, '--features', features, '--root', out],
      {
        cwd: work,
        maxBuffer: 64 * 1024 * 1024,
        env: {
          ...env,
          CARGO_TARGET_DIR: work,
          // rustup puts it here without changing PATH.
          PATH: [env['PATH'] ?? '', join(homedir(), '.cargo', 'bin')].join(delimiter),
        },
      },
    ).catch((error: NodeJS.ErrnoException & { stderr?: string }) => {
      if (error.code === 'ENOENT') throw new Error('Rust is not installed');
      throw new Error(`cargo install failed:\n${(error.stderr ?? error.message).slice(-2_000)}`);
    });
    await rename(join(out, 'bin', spec.name), target);
  } finally {
    await rm(work, { recursive: true, force: true });
    await rm(out, { recursive: true, force: true });
  }
}
