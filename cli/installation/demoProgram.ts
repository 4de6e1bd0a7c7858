import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The demo's places, from this file in the sources and in dist/. */
const CANDIDATES = ['../../demo/main.js', '../../demo/main.ts'];

/** Returns the path of the demo's program, or undefined in an installation: only a checkout of the sources has it. */
export function demoProgram(): string | undefined {
  return CANDIDATES.map((path) => fileURLToPath(new URL(path, import.meta.url))).find(existsSync);
}
