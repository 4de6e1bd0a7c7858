import { execFile } from 'node:child_process';
import { copyFile, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Copies a program of this machine into an image's root, with its dynamic loader and libraries at the paths they have here. */
export async function addProgram(root: string, program: string, at: string): Promise<void> {
  await copyTo(root, program, at);
  for (const library of await sharedLibraries(program)) await copyTo(root, library, library);
}

export async function sharedLibraries(program: string): Promise<string[]> {
  // ldd fails for a static program.
  const { stdout } = await run('ldd', [program]).catch(() => ({ stdout: '' }));
  return librariesOf(stdout);
}

/** The absolute paths in ldd's answer; the kernel's own (linux-vdso) has none. */
export function librariesOf(ldd: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(ldd);
  if (missing !== null) throw new Error(`shared library ${missing[1]} is not installed`);
  return ldd.split('\n').flatMap((line) => /^\s*(?:\S+ => )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

async function copyTo(root: string, source: string, at: string): Promise<void> {
  const target = join(root, at);
  await mkdir(dirname(target), { recursive: true });
  await copyFile(await realpath(source), target);
}
