/**
 * Checks that Temporal's SDK is loaded once. Its native objects cannot be passed between two
 * copies.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';

/** Path of the first module that every user of @temporalio/worker loads. */
const ENTRY = join('@temporalio', 'worker', 'lib', 'index.js');

/**
 * Checks that the process has loaded one copy of Temporal's SDK.
 * @param loaded - paths of the loaded CommonJS modules, which include the SDK's
 * @throws Error that names the version and the folder of each copy, and the fix
 */
export function checkSdkCopies(
  loaded: readonly string[] = Object.keys(createRequire(import.meta.url).cache),
): void {
  const copies = loaded
    .filter((path) => path.endsWith(`${sep}${ENTRY}`))
    .map((path) => path.slice(0, -join('lib', 'index.js').length - 1));
  if (copies.length < 2) return;
  const named = copies.map((folder) => `${versionOf(folder)} in ${folder}`);
  throw new Error(
    `@temporalio/worker: must be loaded once, got ${named.join(' and ')}; give every @temporalio package one version in package.json, then run "npm dedupe"`,
  );
}

function versionOf(folder: string): string {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
