import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Paths of the demo relative to this file, in the sources and in dist/. */
const CANDIDATES = ['../../demo/main.js', '../../demo/main.ts'];

/**
 * Returns the path of the demo, or `undefined` in an installation. Only a checkout of the sources
 * contains it.
 */
export function demoProgram(): string | undefined {
  return CANDIDATES.map((path) => fileURLToPath(new URL(path, import.meta.url))).find(existsSync);
}
