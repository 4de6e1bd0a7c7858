import { readFileSync } from 'node:fs';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Names of the checkout and of the package that this file is published in. */
const NAMES: readonly string[] = ['holdfast', 'holdfast-cli'];

/** The package that this code is part of. */
export interface PackageInfo {
  /** `unknown` outside of a package. */
  readonly version: string;
  /** Commit that the package was built from. Absent in a checkout. */
  readonly commit?: string;
}

/** Reads the package.json: two directories up in the sources, three up in dist/. */
export function packageInfo(): PackageInfo {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { name, version, gitHead } = JSON.parse(
        readFileSync(new URL(path, import.meta.url), 'utf8'),
      ) as { name?: string; version?: string; gitHead?: string };
      if (name !== undefined && NAMES.includes(name) && version !== undefined)
        return { version, ...omitUndefined({ commit: gitHead }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return { version: 'unknown' };
}
