import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Output folder. Inside the checkout, so that Node.js finds the packages. */
const FOLDER = join(ROOT, '.holdfast', 'compiled');

/**
 * Compiles the worker as in the published package, with a prebuilt workflow bundle. Compared with a
 * worker that runs from the sources, it is another build with the same histories.
 *
 * @returns the path of its program
 * @throws Error with the output of the compiler
 */
export async function compiledWorker(): Promise<string> {
  const run = async (...args: string[]): Promise<void> => {
    await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  };
  await run(
    'node_modules/typescript/bin/tsc',
    '-p',
    'tsconfig.build.json',
    '--noCheck',
    '--declaration',
    'false',
    '--outDir',
    FOLDER,
  );
  await run('deploy/images/buildWorkflowBundles.ts', FOLDER);
  return join(FOLDER, 'worker', 'main.js');
}
