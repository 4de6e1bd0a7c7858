import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** One package of package-lock.json. */
export interface LockEntry {
  readonly version: string;
  /** Hash of its archive, which npm verifies. */
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface LockedPackage extends LockEntry {
  readonly name: string;
  /** Where npm puts it: `node_modules/a/node_modules/b`. */
  readonly path: string;
}

/** All packages, the project itself left out. @param file - another lock file of the project */
export function lockedPackages(file = 'package-lock.json'): LockedPackage[] {
  const { packages } = JSON.parse(readFileSync(`${PROJECT}/${file}`, 'utf8')) as {
    packages: Record<string, LockEntry>;
  };
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => ({
      ...entry,
      path,
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    }));
}

/** Returns the packages that production needs. */
export function productionPackages(): LockedPackage[] {
  return lockedPackages().filter(({ dev }) => dev !== true);
}
