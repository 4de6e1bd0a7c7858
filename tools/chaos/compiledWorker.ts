import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** In the checkout, where its packages are found. */
const FOLDER = join(ROOT, '.holdfast', 'compiled');

/**
 * Compiles the worker as the published package has it, with its bundle of the workflows made ahead. Beside a worker that runs from the sources it
 * is another build: other files, another bundle, and the same histories.
 *
 * @returns its program
 * @throws Error with what the compiler says
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
