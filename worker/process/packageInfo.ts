import { readFileSync } from 'node:fs';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Name of the package in a checkout, and of the published package with this file. */
const NAMES: readonly string[] = ['holdfast', 'holdfast-cli'];

/** Package that this code is part of. */
export interface PackageInfo {
  /** Version of the package. `unknown` outside of a package. */
  readonly version: string;
  /** Commit that the package was built from. Absent in a checkout. */
  readonly commit?: string;
}

/** Reads package.json, which is two directories up in the sources and three up in dist/. */
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
