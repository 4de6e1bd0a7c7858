import { readFileSync } from 'node:fs';

/** The package's version: two directories up in the sources, three up in dist/. */
export function packageVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { name, version: found } = JSON.parse(
        readFileSync(new URL(path, import.meta.url), 'utf8'),
      ) as { name?: string; version?: string };
      if (name === 'holdfast' && found !== undefined) return found;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
