import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The absolute paths of a program's dynamic loader and libraries; none for a static program. */
export async function sharedLibraries(program: string): Promise<string[]> {
  // ldd fails for a static program.
  const { stdout } = await promisify(execFile)('ldd', [program]).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT')
        throw new Error(
          'ldd is missing: the programs of an image can only be gathered on Linux with glibc or musl',
        );
      return { stdout: '' };
    },
  );
  return librariesOf(stdout);
}

/** The absolute paths in ldd's answer; the kernel's own (linux-vdso) has none. */
export function librariesOf(ldd: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(ldd);
  if (missing !== null) throw new Error(`shared library ${missing[1]} is not installed`);
  return ldd.split('\n').flatMap((line) => /^\s*(?:\S+ => )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}
