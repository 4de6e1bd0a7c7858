/** Writes generated files. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes each file, creates its folder if it is missing, and prints its path. */
export function writeFiles(
  files: readonly { readonly path: string; readonly text: string }[],
): void {
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    process.stdout.write(`${path}\n`);
  }
}
